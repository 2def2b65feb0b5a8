package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"waybill/domain"
	"waybill/projections"
)

// TestRestartLeavesOthersWorkAlone is Case 5: a worker process starts, is killed and starts
// again while 10,000 deliveries are in flight elsewhere, under leases that live. It sends
// none of them and ends none of their claims, and delivers what is its own to do. The
// guards are lease_until < now() in lock_expired_claims.sql, that adopt_orphans.sql takes
// only what no claim has, and that what is claimed is not due.
func TestRestartLeavesOthersWorkAlone(t *testing.T) {
	t.Parallel()
	const inFlight, own = 10_000, 20
	k := newTrack(t)
	var foreign, mine atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) }))
	defer other.Close()
	to := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { mine.Add(1) }))
	defer to.Close()
	ids := submitWith(t, k.Ledger, other.URL, `{}`, inFlight/5)
	for range 4 {
		submitMore(t, k.Ledger, k.endpointOf(ids[0]), inFlight/5)
	}
	for claimed := 0; claimed < inFlight; {
		b, err := k.Claim(t.Context(), projections.ClaimRequest{Worker: "elsewhere", Lease: time.Hour, Batch: 1000,
			From: []projections.ClaimQuota{{EndpointID: k.endpointOf(ids[0]), Limit: 1000}}})
		if err != nil || len(b.Taken) == 0 {
			t.Fatal(claimed, err)
		}
		claimed += len(b.Taken)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		c := startWorker(t, k.db.URL, k.keyset, "restarted")
		for _, id := range submitWith(t, k.Ledger, to.URL, `{}`, own) {
			k.await(id, domain.StateDelivered)
		}
		time.Sleep(2 * time.Second) // it looks for all work, and for claims that ran out, every 2 s
		_ = c.Process.Signal(signal)
		_ = c.Wait()
	}
	var untouched int
	err := k.db.App.QueryRow(t.Context(), `select count(*) from waybill.deliveries d join waybill.claims c on c.token = d.claim_token
		where d.state = 'processing' and d.version = 2 and c.worker = 'elsewhere'`).Scan(&untouched)
	if err != nil || untouched != inFlight || foreign.Load() != 0 || mine.Load() != 2*own {
		t.Errorf("%d of %d stayed in flight, %d were sent, %d of its own: %v", untouched, inFlight, foreign.Load(), mine.Load(), err)
	}
}
