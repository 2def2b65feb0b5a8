package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// racer is a process that does one thing to a ledger at the moment when all racers of a
// test are released: it says that it is ready with a line, waits, acts, and says with
// another line what came of it.
//
// It is a program of this test binary beside waybill; see TestMain.
func racer() {
	var job raceJob
	err := json.Unmarshal([]byte(os.Args[1]), &job)
	if err == nil {
		err = job.run(context.Background(), os.NewFile(3, "barrier"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "racer:", err)
		os.Exit(1)
	}
}

// raceJob is what a racer is to do, in this order; what is empty is left out.
type raceJob struct {
	DatabaseURL, Keyset, Worker string
	Endpoint                    uuid.UUID
	Hold                        int           // before the release: claim so many
	Lease                       time.Duration // of all claims
	Report                      []domain.Outcome
	Recover                     bool // end claims that have run out
	Take                        int  // claim at most so many
}

// raceResult is what came of it.
type raceResult struct {
	Held, Taken []uuid.UUID
	Ended       int // claims that ran out
	Reports     []command.Recorded
}

func (j raceJob) run(ctx context.Context, barrier io.Reader) error {
	pool, err := postgres.Connect(ctx, j.DatabaseURL, postgres.ConnectOptions{MaxConns: 4})
	if err != nil {
		return err
	}
	defer pool.Close()
	vault, err := secrets.LoadOrCreate(j.Keyset)
	if err != nil {
		return err
	}
	l := postgres.Open(pool, postgres.Config{Vault: vault})
	if _, err := l.Now(ctx); err != nil { // so that the connection is there
		return err
	}
	held, err := j.claim(ctx, l, j.Hold)
	if err != nil {
		return err
	}
	r := raceResult{Held: takenOf(held)}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(r); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, barrier) // until the test lets go of its end
	if err := j.act(ctx, l, held, &r); err != nil {
		return err
	}
	return out.Encode(r)
}

func (j raceJob) act(ctx context.Context, l *postgres.Ledger, held projections.Batch, r *raceResult) (err error) {
	if len(j.Report) > 0 {
		if r.Reports, err = j.report(ctx, l, held); err != nil {
			return err
		}
	}
	if j.Recover {
		_, ended, err := l.Recover(ctx)
		if err != nil {
			return err
		}
		r.Ended = len(ended)
	}
	taken, err := j.claim(ctx, l, j.Take)
	r.Taken = takenOf(taken)
	return err
}

func (j raceJob) claim(ctx context.Context, l *postgres.Ledger, most int) (projections.Batch, error) {
	if most == 0 {
		return projections.Batch{}, nil
	}
	b, err := l.Claim(ctx, projections.ClaimRequest{Worker: j.Worker, Lease: j.Lease, Batch: most,
		From: []projections.ClaimQuota{{EndpointID: j.Endpoint, Limit: most}}})
	slices.SortFunc(b.Taken, func(a, b projections.Assignment) int { // so that two racers' outcomes meet
		return strings.Compare(a.Delivery.ID.String(), b.Delivery.ID.String())
	})
	return b, err
}

// report records a result for each delivery that is held, the outcomes in turn: twice at
// the same time and once more after that, as one does who has lost the answer. Of the
// three answers to one report one is the first; the others repeat it.
func (j raceJob) report(ctx context.Context, l *postgres.Ledger, b projections.Batch) ([]command.Recorded, error) {
	var list []command.Finished
	for i, a := range b.Taken {
		list = append(list, command.Finished{Delivery: a.Delivery, Token: b.Token, Policy: a.Endpoint.Policy,
			EndpointVersion: a.Endpoint.Version, Result: domain.Result{Outcome: j.Report[i%len(j.Report)], StartedAt: b.Now.Time}})
	}
	var answers [3][]command.Recorded
	var errs [3]error
	record := func(i int) {
		answers[i], errs[i] = command.Recorder{Ledger: l}.Record(ctx, domain.WorkerActor(j.Worker), list)
	}
	var wg sync.WaitGroup
	wg.Go(func() { record(0) })
	wg.Go(func() { record(1) })
	wg.Wait()
	record(2)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for i := range list {
		a, b, c := answers[0][i], answers[1][i], answers[2][i]
		if a.Repeated == b.Repeated || !c.Repeated || !same(a, b) || !same(a, c) {
			return nil, fmt.Errorf("one report, three answers: %+v, %+v and %+v", a, b, c)
		}
	}
	return answers[2], nil
}

func same(a, b command.Recorded) bool {
	x, y := a.Attempt, b.Attempt
	return a.Err == nil && b.Err == nil && x.Attempt == y.Attempt && x.Outcome == y.Outcome && x.Superseded == y.Superseded
}

func takenOf(b projections.Batch) (ids []uuid.UUID) {
	for _, a := range b.Taken {
		ids = append(ids, a.Delivery.ID)
	}
	return ids
}
