package domain

// Kind groups refusals by what the caller can do about them.
type Kind int

// The kinds of refusal.
const (
	Invalid       Kind = iota + 1 // the request is malformed: correct it
	Unauthorized                  // no or unknown credentials
	Forbidden                     // known, but not allowed
	NotFound                      // no such thing for this tenant
	Conflict                      // the state does not permit it
	Gone                          // it existed, and never comes back
	Precondition                  // If-Match names another version
	TooLarge                      // more bytes than the limit
	Unprocessable                 // well formed, but cannot be done
	RateLimited                   // try again later
	Unavailable                   // storage is away or busy: try again later
)

// Error is a refusal: the ledger understood and said no. Code is stable and
// machine-readable, Message says what to do. Everything that is not an *Error is
// a fault.
type Error struct {
	Kind    Kind
	Code    string
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Is makes every refusal with the same code equal for [errors.Is].
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// With returns the same refusal with a message about this very case.
func (e *Error) With(message string) *Error {
	return &Error{Kind: e.Kind, Code: e.Code, Message: message}
}

// Every refusal of the product, once.
var (
	ErrInvalidRequest       = &Error{Invalid, "invalid_request", "the request is malformed"}
	ErrIdempotencyKey       = &Error{Invalid, "idempotency_key_invalid", "an idempotency key has 1 to 255 printable ASCII characters"}
	ErrUnauthorized         = &Error{Unauthorized, "unauthorized", "send a valid API key as: Authorization: Bearer wbk_…"}
	ErrScopeMissing         = &Error{Forbidden, "scope_missing", "this key lacks the scope that the call needs"}
	ErrDeliveryNotFound     = &Error{NotFound, "delivery_not_found", "there is no such delivery"}
	ErrMessageNotFound      = &Error{NotFound, "message_not_found", "there is no such message"}
	ErrEndpointNotFound     = &Error{NotFound, "endpoint_not_found", "there is no such endpoint"}
	ErrTenantNotFound       = &Error{NotFound, "tenant_not_found", "there is no such tenant; waybill tenants create makes one"}
	ErrKeyNotFound          = &Error{NotFound, "key_not_found", "there is no such API key"}
	ErrClaimNotFound        = &Error{NotFound, "claim_not_found", "this token was never issued for this delivery; nothing was recorded"}
	ErrNotSealed            = &Error{NotFound, "not_sealed", "there is no sealed event at this position; the newest are sealed within about a second"}
	ErrDeliveryNotYet       = &Error{NotFound, "delivery_not_yet", "the delivery had not come so far"}
	ErrEndpointNotYet       = &Error{NotFound, "endpoint_not_yet", "the endpoint had not come so far"}
	ErrAsOfInFuture         = &Error{Invalid, "as_of_in_future", "the time lies in the future, of which nothing is known"}
	ErrTenantExists         = &Error{Conflict, "tenant_exists", "there is already a tenant of that name"}
	ErrNotReplayable        = &Error{Conflict, "delivery_not_replayable", "only a failed delivery can be replayed; a delivered or cancelled one needs force"}
	ErrNotCancellable       = &Error{Conflict, "delivery_not_cancellable", "the delivery has ended, or a success is already on record"}
	ErrNotHeld              = &Error{Conflict, "delivery_not_held", "only a held delivery can be resolved"}
	ErrNotSettled           = &Error{Conflict, "delivery_not_settled", "a delivery of the message has not ended and may still need its payload; cancel or resolve it first"}
	ErrPartitionUnsettled   = &Error{Conflict, "partition_not_settled", "the month has deliveries that have not ended, or is not wholly sealed"}
	ErrArchiveRunning       = &Error{Conflict, "archive_running", "another archive is at work on this ledger"}
	ErrOwnerNeeded          = &Error{Forbidden, "owner_required", "only the schema's owner can archive; give the database URL that migrate is run with"}
	ErrNotDue               = &Error{Conflict, "delivery_not_due", "the delivery is not waiting for an attempt now"}
	ErrSuperseded           = &Error{Conflict, "claim_superseded", "the claim has ended; a later claim or decision owns the delivery"}
	ErrEndpointInactive     = &Error{Conflict, "endpoint_inactive", "the endpoint is paused or disabled; resume it first"}
	ErrNoSecret             = &Error{Conflict, "endpoint_has_no_secret", "an endpoint of mode remote signs nothing and has no secret"}
	ErrNotRemote            = &Error{Conflict, "endpoint_not_remote", "only endpoints of mode remote are claimed from"}
	ErrEndpointArchived     = &Error{Conflict, "endpoint_archived", "the endpoint is archived and takes nothing more"}
	ErrStale                = &Error{Conflict, "stale_version", "somebody else changed it at the same time; read it again"}
	ErrRestored             = &Error{Conflict, "ledger_restored", "the database is in another state than the checkpoint kept outside it"}
	ErrCheckpointForeign    = &Error{Conflict, "checkpoint_foreign", "the checkpoint file is not of this ledger and key"}
	ErrNotSigning           = &Error{Conflict, "signing_key_missing", "this process has no signing key; give serve a --signing-key"}
	ErrNoCheckpoint         = &Error{Invalid, "checkpoint_unknown", "there is no checkpoint of that size"}
	ErrProjectionNotFound   = &Error{Invalid, "projection_not_found", "there is no such projection; waybill projections list names them"}
	ErrRebuildRunning       = &Error{Conflict, "rebuild_running", "this projection is being rebuilt already"}
	ErrProjectionNotOwned   = &Error{Conflict, "projection_not_owned", "the projection's table belongs to another role"}
	ErrProjectionDependents = &Error{Conflict, "projection_has_dependents", "the projection's table cannot be replaced, as others depend on it"}
	ErrProjectionBusy       = &Error{Conflict, "projection_busy", "others have kept the projection's table locked for too long; nothing was changed"}
	ErrPayloadErased        = &Error{Gone, "payload_erased", "the payload has been erased"}
	ErrDeliveryArchived     = &Error{Gone, "delivery_archived", "the delivery's month has been archived; its history is in the archive's file"}
	ErrVersionMismatch      = &Error{Precondition, "version_mismatch", "the change was meant for another version; read it again"}
	ErrPayloadTooLarge      = &Error{TooLarge, "payload_too_large", "the payload is larger than the limit"}
	ErrIdempotencyConflict  = &Error{Unprocessable, "idempotency_conflict", "this idempotency key was used with a different content"}
	ErrUnsupportedFormat    = &Error{Unprocessable, "unsupported_format", "an export is jsonl or csv"}
	ErrURLNotAllowed        = &Error{Unprocessable, "url_not_allowed", "the URL is not allowed"}
	ErrHeaderNotAllowed     = &Error{Unprocessable, "header_not_allowed", "the header is not allowed"}
	ErrUnsupportedPolicy    = &Error{Unprocessable, "unsupported_policy", "this policy is not supported"}
	ErrRateLimited          = &Error{RateLimited, "rate_limited", "the budget of this window is spent; try again when it ends"}
	ErrStorageUnavailable   = &Error{Unavailable, "storage_unavailable", "the ledger's database is away or busy; try again"}
	ErrOutsidePartitions    = &Error{Unavailable, "partition_missing", "the log has no partition for this month; run waybill migrate"}
	ErrDeliveryIDRepeated   = &Error{Conflict, "delivery_exists", "there is already a delivery of that id"}
	ErrSchemaUnknown        = &Error{Conflict, "schema_unknown", "the database's schema is not the one this program knows"}
	ErrEncodingNotSupported = &Error{Unprocessable, "encoding_not_supported", "the database's encoding must be UTF8"}
)
