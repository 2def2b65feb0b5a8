package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/command"
	"waybill/projections"
)

// archived is a ledger with a month of the past.
type archived struct {
	operatorOf
	*postgres.Ledger
	past pastMonth
	ids  []uuid.UUID
	dir  string
}

func newArchived(t *testing.T, n, waiting int) archived {
	t.Helper()
	o := newOperator(t)
	e, err := uuid.Parse(o.endpoint("https://example.com/hook"))
	if err != nil {
		t.Fatal(err)
	}
	a := archived{operatorOf: o, past: pastMonth{o.db.Owner(), o.db.App, "2025-03", e}, dir: t.TempDir()}
	vault, err := secrets.FromFile(o.keyset)
	if err != nil {
		t.Fatal(err)
	}
	a.Ledger = postgres.Open(o.db.App, postgres.Config{Vault: vault})
	if a.ids, err = a.past.hand(t.Context(), n, waiting); err != nil {
		t.Fatal(err)
	}
	if err := sealAll(t.Context(), a.Ledger); err != nil {
		t.Fatal(err)
	}
	return a
}

// archive is the command as the owner.
func (a archived) archive(args ...string) (output string, exit int) {
	cmd := a.command(append([]string{"archive", "--before", "2025-04-01T00:00:00Z", "--out", a.dir}, args...)...)
	cmd.Env = append(cmd.Env, "WAYBILL_DATABASE_URL="+a.db.OwnerURL)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		a.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// sound demands that every row is the fold of its stream and that every block is what it
// was closed with.
func (a archived) sound(when string) {
	a.t.Helper()
	rep, err := a.Verify(a.t.Context())
	if err != nil || len(rep.Faults) > 0 {
		a.t.Fatalf("%s: %v %v", when, rep.Faults, err)
	}
	blocks, err := a.Blocks(a.t.Context(), 0, 1000)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, b := range blocks {
		leaves, err := a.Leaves(a.t.Context(), b.First-1, b.Last, events.MaxBlock+1)
		if err != nil {
			a.t.Fatal(err)
		}
		if again := events.NewBlock(b.Number, b.First, b.Last, leaves); again != b.Block {
			a.t.Fatalf("%s: block %d is %+v, was closed as %+v", when, b.Number, again, b.Block)
		}
	}
}

func (a archived) archiver() *postgres.Archiver {
	a.t.Helper()
	l := postgres.Open(a.db.Owner(), postgres.Config{})
	v, err := l.NewArchiver(a.t.Context(), "operator:test@here")
	if err != nil {
		a.t.Fatal(err)
	}
	return v
}

// TestArchiveByStages: the ledger is sound after each stage, a second archive is refused
// while one runs, and from closing on nothing is added to the month.
func TestArchiveByStages(t *testing.T) {
	t.Parallel()
	a := newArchived(t, 100, 0)
	run := a.archiver()
	defer run.Close()
	if out, exit := a.archive(); exit != exitRefused || !strings.Contains(out, "archive_running") {
		t.Errorf("a second one: %d %s", exit, out)
	}
	month := projections.Archive{Month: "2025-03", Events: 200, Deliveries: 100}
	replay := func() error {
		_, err := command.Operations{Ledger: a}.Replay(t.Context(), command.Caller{Tenant: "default", Actor: "key:a"}, a.ids[0], "r", true)
		return err
	}
	for _, stage := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"closed", func(ctx context.Context) error { return run.CloseMonth(ctx, month.Month, "r") }},
		{"exported", func(ctx context.Context) error {
			return run.SetFile(ctx, month.Month, events.ExportTail{File: "f", Count: 200}, 100)
		}},
		{"kept", func(ctx context.Context) error { return run.KeepLeaves(ctx, month) }},
		{"cleared", func(ctx context.Context) error { return run.Clear(ctx, month.Month, func(int64) {}) }},
		{"detached", func(ctx context.Context) error { return run.Detach(ctx, month) }},
		{"dropped", func(ctx context.Context) error { return run.Drop(ctx, month.Month) }},
	} {
		if err := stage.do(t.Context()); err != nil {
			t.Fatalf("%s: %v", stage.name, err)
		}
		list, err := a.Archives(t.Context())
		if err != nil || len(list) != 1 || list[0].Stage != stage.name {
			t.Fatalf("%s: %+v %v", stage.name, list, err)
		}
		if err := replay(); !errors.Is(err, domain.ErrDeliveryArchived) {
			t.Errorf("a replay when %s: %v", stage.name, err)
		}
		a.sound(stage.name)
	}
	for _, table := range []string{"deliveries", "messages", "exchanges", "claims", "idempotency_keys"} {
		var n int
		if err := a.db.App.QueryRow(t.Context(), "select count(*) from waybill."+table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows are left in %s: %v", n, table, err)
		}
	}
	if made, err := a.MakePartitions(t.Context()); err != nil || made != 0 {
		t.Errorf("%d partitions made: %v", made, err)
	}
}

// TestArchiveKilled: killed with -9 at any time, export and archive leave a sound ledger
// and no half-written file in place, and the next run ends what they began.
func TestArchiveKilled(t *testing.T) {
	t.Parallel()
	a := newArchived(t, 2500, 0)
	kill := func(after time.Duration, url string, args ...string) {
		cmd := a.command(args...)
		cmd.Env = append(cmd.Env, "WAYBILL_DATABASE_URL="+url)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	out := filepath.Join(t.TempDir(), "out.csv")
	for after := 30 * time.Millisecond; after < 300*time.Millisecond; after += 30 * time.Millisecond {
		kill(after, a.db.URL, "export", "--since", "2025-01-01T00:00:00Z", "--until", "0s", "--format", "csv", "--out", out)
		if _, err := os.Stat(out); err == nil {
			a.run("verify-export", out)
			break
		}
	}
	for after := 40 * time.Millisecond; after < 500*time.Millisecond; after += 40 * time.Millisecond {
		kill(after, a.db.OwnerURL, "archive", "--before", "2025-04-01T00:00:00Z", "--out", a.dir)
		list, err := a.Archives(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.sound(fmt.Sprintf("killed after %s at %+v", after, list))
		if len(list) > 0 {
			t.Logf("killed after %s: %s", after, list[0].Stage)
		}
		if len(list) > 0 && list[0].Done() {
			break
		}
	}
	within(t, "it is done", func() bool { _, exit := a.archive("--drop"); return exit == exitDone })
	list, err := a.Archives(t.Context())
	if err != nil || len(list) != 1 || list[0].Stage != projections.StageDropped || list[0].Events != 5000 {
		t.Fatalf("%+v %v", list, err)
	}
	a.run("verify-export", filepath.Join(a.dir, list[0].File))
	left, err := os.ReadDir(a.dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left in the directory: %v %v", left, err)
	}
	var told int
	if err := a.db.App.QueryRow(t.Context(), "select count(*) from waybill.events where name = 'admin.partition_archived'").Scan(&told); err != nil || told != 1 {
		t.Errorf("the log says so %d times: %v", told, err)
	}
	a.sound("done")
}

// TestArchiveBesideTraffic: while a month is archived, whoever appends and whoever reads
// the log in order goes on without a fault, and the reader misses nothing but the month.
func TestArchiveBesideTraffic(t *testing.T) {
	t.Parallel()
	a := newArchived(t, 3000, 0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var traffic sync.WaitGroup
	handed := make([]int, 3)
	for i := range handed {
		traffic.Go(func() {
			for ctx.Err() == nil {
				now, err := a.Now(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				s, err := a.past.message(now, uuid.NewString())
				if err == nil {
					_, err = a.Schedule(t.Context(), []projections.Submission{s}, now)
				}
				if err != nil {
					t.Errorf("an append: %v", err)
					return
				}
				handed[i]++
			}
		})
	}
	traffic.Go(func() {
		for ctx.Err() == nil {
			if _, err := readAll(t.Context(), a.Reader, 1<<40); err != nil {
				t.Errorf("reading the log: %v", err)
				return
			}
		}
	})
	out, exit := a.archive()
	stop()
	traffic.Wait()
	if exit != exitDone || !strings.Contains(out, "2025-03 detached: 6000 events of 3000 deliveries") {
		t.Fatalf("%d %s", exit, out)
	}
	if err := sealAll(t.Context(), a.Ledger); err != nil {
		t.Fatal(err)
	}
	list, err := readAll(t.Context(), a.Reader, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range list {
		if r.Name == "delivery.scheduled" {
			seen++
		}
	}
	if want := handed[0] + handed[1] + handed[2]; seen != want || slices.Min(handed) == 0 {
		t.Errorf("%d handed in, %d read", want, seen)
	}
	a.sound("after traffic")
}

func readAll(ctx context.Context, r projections.Reader, last int64) (list []events.Record, err error) {
	for after := int64(0); ; {
		page, err := r.Sealed(ctx, after, last, 500)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		after = page[len(page)-1].Position
	}
}

// TestArchiveRaces: operators replay what a month holds while it is closed. Either one of
// them was first and the month stays, or all of them are told that it is archived; late
// results of its claims are refused one by one.
func TestArchiveRaces(t *testing.T) {
	t.Parallel()
	a := newArchived(t, 30, 0)
	run := a.archiver()
	defer run.Close()
	by := command.Caller{Tenant: "default", Actor: "key:a"}
	for n := 0; ; n++ {
		var closed, replayed error
		var both sync.WaitGroup
		both.Go(func() { closed = run.CloseMonth(t.Context(), "2025-03", "r") })
		both.Go(func() {
			time.Sleep(time.Duration(n%4) * time.Millisecond)
			_, replayed = command.Operations{Ledger: a}.Replay(t.Context(), by, a.ids[n%30], "r", true)
		})
		both.Wait()
		switch {
		case closed == nil && errors.Is(replayed, domain.ErrDeliveryArchived):
			a.sound("closed")
			return
		case errors.Is(closed, domain.ErrPartitionUnsettled) && replayed == nil:
			if _, err := (command.Operations{Ledger: a}).Cancel(t.Context(), by, a.ids[n%30], "r"); err != nil {
				t.Fatal(err)
			}
			if err := sealAll(t.Context(), a.Ledger); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("closing: %v, replaying: %v", closed, replayed)
		}
	}
}

// TestLateResultOfArchived: a result that comes after its month was archived is refused,
// and the one beside it in the batch is recorded.
func TestLateResultOfArchived(t *testing.T) {
	t.Parallel()
	a := newArchived(t, 2, 2)
	by := command.Caller{Tenant: "default", Actor: "key:a"}
	b, err := a.Claim(t.Context(), projections.ClaimRequest{Worker: "w", Lease: time.Hour, Batch: 2,
		From: []projections.ClaimQuota{{EndpointID: a.past.endpoint, Limit: 2}}})
	if err != nil || len(b.Taken) != 2 {
		t.Fatalf("%+v %v", b, err)
	}
	for _, id := range a.ids {
		if _, err := (command.Operations{Ledger: a}).Cancel(t.Context(), by, id, "r"); err != nil {
			t.Fatal(err)
		}
	}
	now := a.pending(t)
	if err := sealAll(t.Context(), a.Ledger); err != nil {
		t.Fatal(err)
	}
	run := a.archiver()
	defer run.Close()
	if err := run.CloseMonth(t.Context(), "2025-03", "r"); err != nil {
		t.Fatal(err)
	}
	var list []command.Finished
	for _, v := range append(b.Taken, now) {
		list = append(list, command.Finished{Delivery: v.Delivery, Token: v.Delivery.Claim.Token, Policy: domain.DefaultPolicy(), EndpointVersion: 1,
			Result: domain.Result{Outcome: domain.Succeeded, Status: 200, StartedAt: time.Now()}})
	}
	answers, err := command.Recorder{Ledger: a}.Record(t.Context(), "worker:w", list)
	if err != nil || len(answers) != 3 {
		t.Fatalf("%+v %v", answers, err)
	}
	if !errors.Is(answers[0].Err, domain.ErrDeliveryArchived) || !errors.Is(answers[1].Err, domain.ErrDeliveryArchived) || answers[2].Err != nil {
		t.Errorf("%+v", answers)
	}
	a.sound("late results")
}

// pending hands in a message of now and takes it.
func (a archived) pending(t *testing.T) projections.Assignment {
	t.Helper()
	now, err := a.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.past.message(now, "")
	if err == nil {
		_, err = a.Schedule(t.Context(), []projections.Submission{s}, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Claim(t.Context(), projections.ClaimRequest{Worker: "w", Lease: time.Hour, Batch: 1,
		From: []projections.ClaimQuota{{EndpointID: a.past.endpoint, Limit: 1}}})
	if err != nil || len(b.Taken) != 1 {
		t.Fatalf("%+v %v", b, err)
	}
	return b.Taken[0]
}
