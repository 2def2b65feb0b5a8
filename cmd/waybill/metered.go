package main

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/handlers/api"
	"waybill/handlers/command"
	"waybill/handlers/worker"
	"waybill/projections"
)

// meteredSender counts attempts.
type meteredSender struct {
	worker.Sender
	*metrics
}

// Send makes one attempt and counts it.
func (s meteredSender) Send(ctx context.Context, r domain.Request) domain.Result {
	s.sending.Inc()
	defer s.sending.Dec()
	begun := time.Now()
	res := s.Sender.Send(ctx, r)
	s.duration.Observe(time.Since(begun).Seconds())
	s.attempts.WithLabelValues(string(res.Outcome), string(res.Reason)).Inc()
	return res
}

// meteredLedger counts claims and what became of results.
type meteredLedger struct {
	*postgres.Ledger
	*metrics
}

// Claim counts claims that brought something.
func (l meteredLedger) Claim(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error) {
	b, err := l.Ledger.Claim(ctx, r)
	if len(b.Taken) > 0 {
		l.claims.Inc()
		l.claimed.Add(float64(len(b.Taken)))
	}
	return b, err
}

// Record counts what was stale.
func (l meteredLedger) Record(ctx context.Context, list []projections.ResultChange) ([]uuid.UUID, error) {
	stale, err := l.Ledger.Record(ctx, list)
	l.stale.Add(float64(len(stale)))
	return stale, err
}

// Append counts what was stale.
func (l meteredLedger) Append(ctx context.Context, list []projections.DeliveryChange) ([]uuid.UUID, error) {
	stale, err := l.Ledger.Append(ctx, list)
	l.stale.Add(float64(len(stale)))
	return stale, err
}

// AppendLate counts what was stale, and the attempts that were superseded.
func (l meteredLedger) AppendLate(ctx context.Context, list []projections.ResultChange) ([]uuid.UUID, error) {
	stale, err := l.Ledger.AppendLate(ctx, list)
	l.stale.Add(float64(len(stale)))
	if err != nil {
		return stale, err
	}
	again := map[uuid.UUID]bool{}
	for _, id := range stale {
		again[id] = true
	}
	for _, r := range list {
		for _, rec := range r.Records {
			e, _ := rec.Event()
			if a, ok := e.(domain.Attempted); ok && a.Superseded && !again[r.After.ID] {
				l.superseded.Inc()
			}
		}
	}
	return stale, nil
}

// Recover counts deliveries whose claim ran out.
func (l meteredLedger) Recover(ctx context.Context) (int, []projections.Delivery, error) {
	claims, ended, err := l.Ledger.Recover(ctx)
	l.expired.Add(float64(len(ended)))
	return claims, ended, err
}

// meteredSubmitter counts answers to submissions.
type meteredSubmitter struct {
	api.Submitter
	*metrics
}

// Submit counts its answer.
func (s meteredSubmitter) Submit(ctx context.Context, by command.Caller, sub command.Submission) (projections.Acceptance, error) {
	a, err := s.Submitter.Submit(ctx, by, sub)
	s.submissions.WithLabelValues(submissionCode(a, err)).Inc()
	return a, err
}

// SubmitBatch counts each item's answer.
func (s meteredSubmitter) SubmitBatch(ctx context.Context, by command.Caller, subs []command.Submission) []projections.Acceptance {
	list := s.Submitter.SubmitBatch(ctx, by, subs)
	for _, a := range list {
		s.submissions.WithLabelValues(submissionCode(a, a.Err)).Inc()
	}
	return list
}

// submissionCode is what a submission was answered, as the API will say it.
func submissionCode(a projections.Acceptance, err error) string {
	var refusal *domain.Error
	switch {
	case err == nil && a.Duplicate:
		return "duplicate"
	case err == nil:
		return "accepted"
	case errors.As(err, &refusal):
		return refusal.Code
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), postgres.Transient(err):
		return domain.ErrStorageUnavailable.Code
	}
	return "internal"
}
