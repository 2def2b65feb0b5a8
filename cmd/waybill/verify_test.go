package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/events"
	"waybill/projections"
)

// history makes deliveries that were delivered, each with what the receiver answered, and
// seals the log.
func (k track) history(n int) []uuid.UUID {
	k.t.Helper()
	endpoint, ids := k.submit("{}", n)
	b, err := k.Claim(k.t.Context(), projections.ClaimRequest{
		Worker: "w", Lease: time.Minute, Batch: n, From: []projections.ClaimQuota{{EndpointID: endpoint, Limit: n}},
	})
	if err != nil || len(b.Taken) != n {
		k.t.Fatal(len(b.Taken), err)
	}
	results := make([]projections.ResultChange, n)
	for i, c := range b.Taken {
		x := projections.Exchange{DeliveryID: c.Delivery.ID, Attempt: 1, Salt: []byte("salt"), Excerpt: []byte("thanks"), Location: []byte{}, Detail: []byte{}}
		facts, err := c.Delivery.Record(domain.Report{
			Token: b.Token, Result: domain.Result{Outcome: domain.Succeeded, Status: 200, StartedAt: b.Now.Time},
			ResponseCommitment: events.Commitment(x.Salt, x.Excerpt),
		}, domain.Retry{Policy: domain.DefaultPolicy(), From: b.Now})
		if err != nil {
			k.t.Fatal(err)
		}
		change, err := c.Delivery.Advance("worker:w", b.Now, facts...)
		if err != nil {
			k.t.Fatal(err)
		}
		results[i] = projections.ResultChange{DeliveryChange: change, Token: b.Token, Exchange: &x}
	}
	if stale, err := k.Record(k.t.Context(), results); err != nil || len(stale) > 0 {
		k.t.Fatal(stale, err)
	}
	if err := sealAll(k.t.Context(), k.Ledger); err != nil {
		k.t.Fatal(err)
	}
	return ids
}

// forge runs statements as somebody whom no trigger and no right keeps from anything. @d
// stands for the delivery's id.
func (k track) forge(d uuid.UUID, statements ...string) {
	k.t.Helper()
	tx, err := k.db.Super().Begin(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	for _, sql := range append([]string{"set local session_replication_role = replica",
		"alter table waybill.events disable trigger all; alter table waybill.events_delivery disable trigger all",
		`do $$ declare p regclass; begin
			for p in select inhrelid from pg_inherits where inhparent in ('waybill.events'::regclass, 'waybill.events_delivery'::regclass) loop
				execute format('alter table %s disable trigger all', p);
			end loop; end $$`,
		"alter table waybill.blocks disable trigger all",
		fmt.Sprintf("set local waybill.d = '%s'", d)}, statements...) {
		if _, err := tx.Exec(k.t.Context(), sql); err != nil {
			k.t.Fatal(sql, err)
		}
	}
	if err := tx.Commit(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

const ofD = " where stream = 'delivery' and stream_id = current_setting('waybill.d')::uuid "

// tamperings are Case 37, and more: what somebody with all rights does to a history of
// scheduled, claimed, attempted, delivered, and what verification must say. Seq 0 is a
// fault of a block.
var tamperings = []struct {
	name string
	sql  []string
	want map[projections.FaultCode]int // the last seq that is named
}{
	{"data", []string{`update waybill.events set data = replace(data::text, '"status":200', '"status":500')::json` + ofD + "and seq = 3"},
		map[projections.FaultCode]int{projections.FaultHash: 3}},
	{"actor", []string{"update waybill.events set actor = 'operator:mallory@there'" + ofD + "and seq = 2"},
		map[projections.FaultCode]int{projections.FaultHash: 2}},
	{"time", []string{"update waybill.events set recorded_at = recorded_at - interval '1 hour'" + ofD + "and seq = 1"},
		map[projections.FaultCode]int{projections.FaultHash: 1, projections.FaultRow: 4}},
	{"position", []string{"update waybill.events set position = position + 1000000" + ofD + "and seq = 2"},
		map[projections.FaultCode]int{projections.FaultPosition: 3, projections.FaultBlock: 0}},
	{"position of the last, upwards", []string{"update waybill.events set position = position + 1000000" + ofD + "and seq = 4"},
		map[projections.FaultCode]int{projections.FaultBlock: 0}},
	{"one deleted", []string{"delete from waybill.events" + ofD + "and seq = 2"},
		map[projections.FaultCode]int{projections.FaultMissing: 2, projections.FaultBlock: 0}},
	{"two swapped", []string{
		"update waybill.events set seq = 100" + ofD + "and seq = 3", "update waybill.events set seq = 3" + ofD + "and seq = 4",
		"update waybill.events set seq = 4" + ofD + "and seq = 100"},
		map[projections.FaultCode]int{projections.FaultHash: 4, projections.FaultPosition: 4, projections.FaultRow: 4}},
	{"the last cut", []string{"delete from waybill.events" + ofD + "and seq > 2"},
		map[projections.FaultCode]int{projections.FaultRow: 4, projections.FaultBlock: 0}},
	{"all of a stream", []string{"delete from waybill.events" + ofD},
		map[projections.FaultCode]int{projections.FaultMissing: 1, projections.FaultBlock: 0}},
	{"stream, row and all", []string{"delete from waybill.events" + ofD, "delete from waybill.deliveries where id = current_setting('waybill.d')::uuid"},
		map[projections.FaultCode]int{projections.FaultBlock: 0}},
	{"row", []string{"update waybill.deliveries set state = 'failed' where id = current_setting('waybill.d')::uuid"},
		map[projections.FaultCode]int{projections.FaultRow: 4}},
	{"row gone", []string{"delete from waybill.deliveries where id = current_setting('waybill.d')::uuid"},
		map[projections.FaultCode]int{projections.FaultRow: 4}},
	{"payload", []string{"update waybill.messages set payload = 'x' where current_setting('waybill.d')::uuid = any (delivery_ids)"},
		map[projections.FaultCode]int{projections.FaultPayload: 1}},
	{"payload and commitment", []string{"update waybill.messages set payload = '', salt = '', commitment = '' where current_setting('waybill.d')::uuid = any (delivery_ids)"},
		map[projections.FaultCode]int{projections.FaultPayload: 1}},
	{"payload gone", []string{"update waybill.messages set payload = null, salt = null where current_setting('waybill.d')::uuid = any (delivery_ids)"},
		map[projections.FaultCode]int{projections.FaultPayload: 1}},
	{"message gone", []string{"delete from waybill.messages where current_setting('waybill.d')::uuid = any (delivery_ids)"},
		map[projections.FaultCode]int{projections.FaultPayload: 1}},
	{"answer", []string{"update waybill.exchanges set excerpt = 'no' where delivery_id = current_setting('waybill.d')::uuid"},
		map[projections.FaultCode]int{projections.FaultExcerpt: 3}},
	{"answer gone", []string{"delete from waybill.exchanges where delivery_id = current_setting('waybill.d')::uuid"},
		map[projections.FaultCode]int{projections.FaultExcerpt: 3}},
	{"name", []string{"update waybill.events set name = 'delivery.lost'" + ofD + "and seq = 2"},
		map[projections.FaultCode]int{projections.FaultHash: 2, projections.FaultUndecodable: 2}},
	{"block", []string{"update waybill.blocks set root = sha256('x') where number = 0"},
		map[projections.FaultCode]int{projections.FaultBlock: 0, projections.FaultTree: 0}},
	{"nodes", []string{"update waybill.blocks set nodes = nodes || sha256('x') where number = 0"},
		map[projections.FaultCode]int{projections.FaultTree: 0}},
	{"blocks cut", []string{"delete from waybill.blocks"},
		map[projections.FaultCode]int{projections.FaultHead: 0}},
	{"endpoint", []string{"update waybill.endpoints set description = 'x'"},
		map[projections.FaultCode]int{projections.FaultRow: 1}},
	{"administration cut", []string{"delete from waybill.events where stream = 'admin'"},
		map[projections.FaultCode]int{projections.FaultMissing: 1, projections.FaultBlock: 0}},
}

// TestVerifyNamesEachTampering is Case 37: each kind of tampering is found, and nothing
// else is.
func TestVerifyNamesEachTampering(t *testing.T) {
	t.Parallel()
	for _, c := range tamperings {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newTrack(t)
			ids := k.history(3)
			k.tenantMade()
			k.verify()
			k.forge(ids[1], c.sql...)
			rep, err := k.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found := map[projections.FaultCode]int{}
			for _, f := range rep.Faults {
				found[f.Code] = f.Seq
				if f.Stream == events.DeliveryStream && f.StreamID != ids[1] {
					t.Errorf("an innocent one is named: %s", f)
				}
			}
			if fmt.Sprint(found) != fmt.Sprint(c.want) {
				t.Errorf("found %v, want %v:\n%v", found, c.want, rep.Faults)
			}
		})
	}
}

// tenantMade puts something into an administrative stream and seals it.
func (k track) tenantMade() {
	k.t.Helper()
	operatorOf{k.t, k.db, k.keyset}.run("tenants", "create", "other")
	if err := sealAll(k.t.Context(), k.Ledger); err != nil {
		k.t.Fatal(err)
	}
}

// TestVerifyAgainstACheckpoint: blocks that were cut off together with the head, or made
// anew, are what only a checkpoint kept elsewhere finds.
func TestVerifyAgainstACheckpoint(t *testing.T) {
	t.Parallel()
	k := newTrack(t)
	k.history(2)
	key, err := secrets.CreateSigningKey(filepath.Join(t.TempDir(), "key"), "test")
	if err != nil {
		t.Fatal(err)
	}
	k.history(2)
	at, err := k.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	signed, err := at.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := events.OpenCheckpoint(signed, key.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	v := projections.Verification{Schema: k.Schema, Snapshot: k.Snapshot, Checkpoint: &checkpoint}
	demand := func(code ...projections.FaultCode) {
		t.Helper()
		rep, err := v.Run(t.Context())
		if err != nil || len(rep.Faults) != len(code) || len(code) > 0 && rep.Faults[0].Code != code[0] {
			t.Errorf("%+v %v, want %v", rep.Faults, err, code)
		}
	}
	demand()
	k.history(1) // it extends it
	demand()
	k.forge(uuid.Nil, "delete from waybill.blocks where number > 0",
		"update waybill.ledger_head set blocks = 1, last = (select last from waybill.blocks)")
	demand(projections.FaultCheckpoint)
	checkpoint.Size, checkpoint.Root = 1, events.Hash{}
	demand(projections.FaultCheckpoint)
	checkpoint.Ledger = uuid.Max
	demand(projections.FaultCheckpoint)
}

// TestVerifyBesideTraffic: while deliveries come and end, blocks are closed and the tables
// are swapped for rebuilt ones, nothing looks wrong.
func TestVerifyBesideTraffic(t *testing.T) {
	t.Parallel()
	k := newTrack(t)
	k.history(20)
	done := make(chan struct{})
	var work errgroup.Group
	work.Go(func() error {
		for n := 0; ; n++ {
			select {
			case <-done:
				if n < 3 {
					return fmt.Errorf("verified %d times only", n)
				}
				return nil
			default:
			}
			rep, err := k.Verify(t.Context())
			if err != nil || len(rep.Faults) > 0 {
				return fmt.Errorf("%w: %v", err, rep.Faults)
			}
		}
	})
	work.Go(func() error {
		for n := range 6 {
			p, err := projections.FindProjection([]string{"deliveries", "endpoints"}[n%2])
			if err == nil {
				_, err = postgres.Rebuild(t.Context(), k.db.OwnerURL, k.Schema, p, postgres.RebuildOptions{})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for range 12 {
		k.history(20)
	}
	close(done)
	if err := work.Wait(); err != nil {
		t.Error(err)
	}
}

// TestVerifyByRangeAndSample: ranges that meet cover everything once, a verification that
// is cut off says from where to go on, and a sample is about as large as was asked for.
func TestVerifyByRangeAndSample(t *testing.T) {
	t.Parallel()
	k := newTrack(t)
	ids := k.history(300)
	v := projections.Verification{Schema: k.Schema, Snapshot: k.Snapshot}
	count := func(from, to uuid.UUID, share float64) projections.Report {
		t.Helper()
		v.From, v.To, v.Sample = from, to, share
		rep, err := v.Run(t.Context())
		if err != nil || len(rep.Faults) > 0 {
			t.Fatal(rep.Faults, err)
		}
		return rep
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, cut := range []int{0, 1, 150, 299} {
		low, high := count(uuid.Nil, ids[cut], 0), count(ids[cut], uuid.Nil, 0)
		if low.Deliveries != cut || high.Deliveries != 300-cut || low.Blocks+high.Blocks > 0 {
			t.Errorf("cut at %d: %+v %+v", cut, low, high)
		}
	}
	total := 0
	for range 30 {
		total += count(uuid.Nil, uuid.Nil, 0.2).Deliveries
	}
	if total < 900 || total > 2700 { // 1,800 expected
		t.Errorf("a sample of a fifth looked at %d of 9,000", total)
	}
	ctx, cancel := context.WithCancel(t.Context())
	v.Sample, v.Done = 0, func(int64) { cancel() }
	if _, err := v.Run(ctx); err == nil {
		t.Error("cut off, and no error")
	}
}
