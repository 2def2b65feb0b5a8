package main

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"waybill/events"
)

// trial is the checker's fold of one delivery's stream.
type trial struct {
	*audit
	id, endpoint uuid.UUID
	key, message string

	seq      int
	position int64
	hash     events.Hash
	at       time.Time // of the last record

	state    string // pending, processing, ended (what follows is owed), held, delivered, failed, cancelled
	due      time.Time
	open     *tenure // nil: nobody owns it
	ended    *tenure // whose end still owes what follows; nil: the hold's or a late success's
	heldBy   uuid.UUID
	claims   map[uuid.UUID]*tenure
	attempts map[int]*tenure // by lifetime number
	last     int             // highest number drawn
	cycle    int
	spent    int // of the cycle
	forced   int // successes of attempts up to this prove nothing
	proof    int // attempt of the first success that counts
}

// tenure is one claim of a stream.
type tenure struct {
	token                 uuid.UUID
	attempt, cycleAttempt int
	lease                 time.Time
	end                   string // the event that ended it; empty: open
	result                *tortureFact
}

// tortureFact is every member of event data that the checker looks at, under the
// names that the log has.
type tortureFact struct {
	EndpointID     uuid.UUID `json:"endpoint_id"`
	MessageID      uuid.UUID `json:"message_id"`
	IdempotencyKey string    `json:"idempotency_key"`
	DueAt          time.Time `json:"due_at"`
	LeaseUntil     time.Time `json:"lease_until"`
	Token          uuid.UUID `json:"claim_token"`
	Cycle          int       `json:"cycle"`
	Attempt        int       `json:"attempt"`
	CycleAttempt   int       `json:"cycle_attempt"`
	Outcome        string    `json:"outcome"`
	Status         int       `json:"status"`
	Superseded     bool      `json:"superseded"`
	AfterRelease   bool      `json:"after_release"`
	Why            string    `json:"why"`
	Resolution     string    `json:"resolution"`
	Force          bool      `json:"force"`
}

func newTrial(a *audit, id uuid.UUID) *trial {
	return &trial{audit: a, id: id, claims: map[uuid.UUID]*tenure{}, attempts: map[int]*tenure{}}
}

func (t *trial) object(rule, format string, args ...any) { t.say(rule, t.id, t.seq, format, args...) }

// require objects unless something holds.
func (t *trial) require(holds bool, rule, format string, args ...any) {
	if !holds {
		t.object(rule, format, args...)
	}
}

// hear takes the stream's next record.
func (t *trial) hear(r events.Record) {
	if t.seq+1 != r.Seq {
		t.say(ruleHole, t.id, r.Seq, "follows seq %d", t.seq)
	}
	t.seq = r.Seq
	t.require(r.Position > t.position, rulePosition, "position %d follows %d", r.Position, t.position)
	t.require(!r.RecordedAt.Before(t.at), ruleTime, "recorded at %s, after %s", r.RecordedAt, t.at)
	t.require(r.Hash == r.Sum(t.hash), ruleChain, "the hash is not that of the record and the one before")
	t.position, t.hash, t.at = r.Position, r.Hash, r.RecordedAt.Time
	var f tortureFact
	if err := json.Unmarshal(r.Data, &f); err != nil {
		t.object(ruleFollows, "%s cannot be read: %s", r.Name, err)
		return
	}
	t.require((r.Seq == 1) == (r.Name == "delivery.scheduled"), ruleFollows, "%s", r.Name)
	t.guardProof(r.Name, f)
	t.guardDebt(r.Name)
	t.fold(r.Name, f)
}

// guardProof: once a success counts, nothing begins and nobody decides otherwise.
func (t *trial) guardProof(name string, f tortureFact) {
	if t.proof == 0 {
		return
	}
	switch name {
	case "delivery.delivered", "delivery.attempted", "delivery.released", "delivery.lease_expired":
	case "delivery.replayed":
		t.require(f.Force, ruleProof, "replayed without force although attempt %d has succeeded", t.proof)
	default:
		t.object(ruleProof, "%s although attempt %d has succeeded", name, t.proof)
	}
}

// guardDebt: what is owed after the end of a claim comes next, and only then.
func (t *trial) guardDebt(name string) {
	switch name {
	case "delivery.delivered", "delivery.retry_scheduled", "delivery.held":
		t.require(t.state == "ended", ruleFollows, "%s while %s", name, t.state)
	case "delivery.failed": // also of a claim that finds its cycle spent
		t.require(t.state == "ended" || t.state == "pending", ruleFollows, "%s while %s", name, t.state)
	default:
		t.require(t.state != "ended", ruleFollows, "%s where what follows from the claim's end is owed", name)
	}
}

func (t *trial) fold(name string, f tortureFact) {
	switch name {
	case "delivery.scheduled":
		t.endpoint, t.message, t.key = f.EndpointID, f.MessageID.String(), f.IdempotencyKey
		t.state, t.cycle, t.due = "pending", 1, f.DueAt
	case "delivery.claimed":
		t.claim(f)
	case "delivery.attempted":
		t.attempted(f)
	case "delivery.released":
		t.finish(f.Token, name)
		t.spent--
		t.state, t.due = "pending", f.DueAt
		t.tally.Released++
		if t.proof != 0 {
			t.state = "ended"
		}
	case "delivery.lease_expired":
		c := t.finish(f.Token, name)
		t.require(c == nil || c.attempt == f.Attempt, ruleNumbers, "attempt %d ran out under the claim of another", f.Attempt)
		if c != nil && t.at.Before(c.lease) {
			t.object(ruleTime, "ran out before its lease did, at %s", c.lease)
		}
		t.state, t.ended = "ended", c
		t.tally.Expired++
	default:
		t.consequence(name, f)
	}
}

// close is the end of the stream.
func (t *trial) close() {
	t.tally.States[t.state]++
	switch t.state {
	case "delivered", "failed", "cancelled":
	default:
		t.object(ruleEnds, "at the end it is %s", t.state)
	}
	t.require(t.proof == 0 || t.state == "delivered" || t.state == "cancelled", ruleProof,
		"attempt %d has succeeded and it is %s", t.proof, t.state)
	t.require(t.open == nil, ruleEnds, "a claim is open at the end")
}
