package command

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// RemoteLedger is what remote workers need of the ledger.
type RemoteLedger interface {
	RecordLedger
	Delivery(ctx context.Context, tenant string, id uuid.UUID) (projections.Delivery, error)
	Endpoint(ctx context.Context, tenant string, id uuid.UUID) (projections.Endpoint, error)
	RemoteEndpoints(ctx context.Context, tenant string) ([]uuid.UUID, error)
	Claim(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error)
	EndClaims(ctx context.Context, tokens []uuid.UUID) error
	ExtendClaim(ctx context.Context, c projections.DeliveryChange, until time.Time) (stale bool, err error)
}

// Remote is the work of callers who make the requests of endpoints of mode remote with
// their own code: they claim, call, and report, under the same tokens, leases and rules
// as Waybill's own workers. Gone, if given, is called after a report of 410.
type Remote struct {
	Ledger RemoteLedger
	Gone   func(ctx context.Context, tenant string, endpoint, delivery uuid.UUID) error
}

// Bounds of what a remote worker may ask for.
const (
	MaxRemoteClaim = 100
	MinRemoteLease = 10 * time.Second
	MaxRemoteLease = time.Hour
	MaxRemoteWait  = 25 * time.Second
)

// RemoteClaim is what a remote worker asks for.
type RemoteClaim struct {
	Worker     string
	Limit      int           // 1 to MaxRemoteClaim
	Lease      time.Duration // MinRemoteLease to MaxRemoteLease
	EndpointID uuid.UUID     // zero: any of the tenant's
	Wait       time.Duration // for work to come, at most MaxRemoteWait
}

func (c RemoteClaim) check() error {
	switch {
	case c.Worker == "":
		return domain.ErrInvalidRequest.With("worker is missing: a name, for those who read the history")
	case c.Limit < 1 || c.Limit > MaxRemoteClaim:
		return domain.ErrInvalidRequest.With(fmt.Sprintf("limit is 1 to %d", MaxRemoteClaim))
	case c.Lease < MinRemoteLease || c.Lease > MaxRemoteLease:
		return domain.ErrInvalidRequest.With("lease_seconds is 10 to 3600")
	case c.Wait < 0 || c.Wait > MaxRemoteWait:
		return domain.ErrInvalidRequest.With(fmt.Sprintf("wait is 0s to %s", MaxRemoteWait))
	}
	return domain.CheckText("worker", c.Worker, domain.MaxName)
}

// How long a waiting claim sleeps before it looks again.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 500 * time.Millisecond
)

// Claim takes due deliveries, each under a token of its own, in turn from the tenant's
// remote endpoints. Where nothing is due it waits as asked.
func (m Remote) Claim(ctx context.Context, by Caller, c RemoteClaim) ([]projections.Assignment, error) {
	if err := checkAll(by.Check(), c.check(), m.checkEndpoint(ctx, by, c.EndpointID)); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(c.Wait)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		taken, err := m.claimNow(ctx, by, c)
		left := time.Until(deadline)
		if err != nil || len(taken) > 0 || left <= 0 {
			return taken, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(pause, left)):
		}
	}
}

func (m Remote) checkEndpoint(ctx context.Context, by Caller, id uuid.UUID) error {
	if id == uuid.Nil {
		return nil
	}
	e, err := m.Ledger.Endpoint(ctx, by.Tenant, id)
	if err == nil && e.Config.Mode != domain.ModeRemote {
		err = domain.ErrNotRemote
	}
	return err
}

// claimNow goes round the endpoints: first so that each gets its share, then for
// whoever has more.
func (m Remote) claimNow(ctx context.Context, by Caller, c RemoteClaim) ([]projections.Assignment, error) {
	endpoints := []uuid.UUID{c.EndpointID}
	if c.EndpointID == uuid.Nil {
		var err error
		if endpoints, err = m.Ledger.RemoteEndpoints(ctx, by.Tenant); err != nil || len(endpoints) == 0 {
			return nil, err
		}
		rand.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	}
	var taken []projections.Assignment
	for _, quota := range []int{(c.Limit + len(endpoints) - 1) / len(endpoints), c.Limit} {
		left := c.Limit - len(taken)
		if left == 0 {
			break
		}
		b, err := m.Ledger.Claim(ctx, claimRequest(by, c, endpoints, min(quota, left), left))
		if err != nil {
			return taken, keepWhatIsTaken(taken, err)
		}
		taken = append(taken, b.Taken...)
		if len(b.Taken) == 0 {
			break
		}
	}
	return taken, nil
}

func claimRequest(by Caller, c RemoteClaim, endpoints []uuid.UUID, quota, most int) projections.ClaimRequest {
	r := projections.ClaimRequest{
		Worker: c.Worker, By: by.Actor, Tenant: by.Tenant, Mode: domain.ModeRemote, Lease: c.Lease, Batch: most, TokenEach: true,
	}
	for _, id := range endpoints {
		r.From = append(r.From, projections.ClaimQuota{EndpointID: id, Limit: quota})
	}
	return r
}

// keepWhatIsTaken forgives a fault after part of a claim has been committed: what is
// taken must reach its worker.
func keepWhatIsTaken(taken []projections.Assignment, err error) error {
	if len(taken) > 0 {
		return nil
	}
	return err
}

// RemoteResult is what a remote worker says of its call.
type RemoteResult struct {
	Token   uuid.UUID
	Outcome domain.Outcome
	Status  int // HTTP status, where there was one
	Reason  domain.Reason
}

func (r RemoteResult) check() error {
	switch {
	case !r.Outcome.Valid():
		return domain.ErrInvalidRequest.With("outcome is one of succeeded, refused, unreached, unknown")
	case r.Status != 0 && (r.Status < 100 || r.Status > 599):
		return domain.ErrInvalidRequest.With("status is an HTTP status, 100 to 599")
	case r.Reason != "" && !r.Reason.Valid():
		return domain.ErrInvalidRequest.With("reason is one of the reasons of delivery.attempted")
	}
	return nil
}

// Report records a result. Under a claim that has ended it is kept as a superseded
// attempt; a token that reports again gets its first answer; a token that was never
// issued for this delivery records nothing and gets ErrClaimNotFound.
func (m Remote) Report(ctx context.Context, by Caller, id uuid.UUID, res RemoteResult) (Recorded, error) {
	if err := checkAll(by.Check(), res.check()); err != nil {
		return Recorded{}, err
	}
	d, e, err := m.read(ctx, by, id)
	if err != nil {
		return Recorded{}, err
	}
	f := Finished{Delivery: d, Token: res.Token, Policy: e.Config.Policy, EndpointVersion: e.Version,
		Result: domain.Result{Outcome: res.Outcome, Status: res.Status, Reason: res.Reason}}
	answer, err := Recorder{m.Ledger}.RecordClaimed(ctx, by.Actor, f)
	if err != nil {
		return answer, err
	}
	if !answer.Repeated {
		_ = m.Ledger.EndClaims(ctx, []uuid.UUID{res.Token}) // what stays is removed when it runs out
	}
	if answer.Delivery.FailureReason == domain.Rejected && m.Gone != nil {
		err = m.Gone(ctx, by.Tenant, d.EndpointID, id)
	}
	return answer, err
}

// read returns a delivery of the tenant that belongs to a remote endpoint.
func (m Remote) read(ctx context.Context, by Caller, id uuid.UUID) (projections.Delivery, projections.Endpoint, error) {
	d, err := m.Ledger.Delivery(ctx, by.Tenant, id)
	if err != nil {
		return d, projections.Endpoint{}, err
	}
	e, err := m.Ledger.Endpoint(ctx, by.Tenant, d.EndpointID)
	if err == nil && e.Config.Mode != domain.ModeRemote {
		err = domain.ErrClaimNotFound
	}
	return d, e, err
}

// Extend moves the end of a claim's lease to so long from now.
func (m Remote) Extend(ctx context.Context, by Caller, id, token uuid.UUID, lease time.Duration) (domain.Instant, error) {
	if lease < MinRemoteLease || lease > MaxRemoteLease {
		return domain.Instant{}, domain.ErrInvalidRequest.With("lease_seconds is 10 to 3600")
	}
	for range staleTries {
		at, err := m.Ledger.Now(ctx)
		if err != nil {
			return at, err
		}
		d, err := m.owned(ctx, by, id, token)
		if err != nil {
			return at, err
		}
		until := at.After(lease)
		facts, err := d.Extend(token, until)
		if err != nil {
			return at, err
		}
		change, err := d.Advance(by.Actor, at, facts...)
		if err != nil {
			return at, err
		}
		stale, err := m.Ledger.ExtendClaim(ctx, change, until.Time)
		if err != nil || !stale {
			return until, err
		}
	}
	return domain.Instant{}, domain.ErrStale
}

// Release gives a claim back as never sent.
func (m Remote) Release(ctx context.Context, by Caller, id, token uuid.UUID) (projections.Delivery, error) {
	d, err := m.owned(ctx, by, id, token)
	if err != nil {
		return d, err
	}
	err = Recorder{m.Ledger}.Release(ctx, by.Actor, []Finished{{Delivery: d, Token: token, Why: domain.WhyGivenBack}})
	if err != nil {
		return d, err
	}
	_ = m.Ledger.EndClaims(ctx, []uuid.UUID{token}) // what stays is removed when it runs out
	return m.Ledger.Delivery(ctx, by.Tenant, id)
}

// owned returns a delivery that the token owns; ErrSuperseded if it did once,
// ErrClaimNotFound if it never did.
func (m Remote) owned(ctx context.Context, by Caller, id, token uuid.UUID) (projections.Delivery, error) {
	d, _, err := m.read(ctx, by, id)
	if err != nil || d.Owns(token) {
		return d, err
	}
	streams, err := m.Ledger.Streams(ctx, events.DeliveryStream, []uuid.UUID{id})
	if err != nil {
		return d, err
	}
	_, claims, err := projections.FoldDelivery(streams[id])
	if err != nil {
		return d, err
	}
	if _, known := claims.Find(token); !known {
		return d, domain.ErrClaimNotFound
	}
	return d, domain.ErrSuperseded
}
