package worker_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/domain"
	"waybill/handlers/command"
)

// BenchmarkSubmitAndDeliver hands in and delivers at once: four events a delivery,
// real loopback HTTP, 100 endpoints, one process. One iteration is one delivery.
func BenchmarkSubmitAndDeliver(b *testing.B) {
	r := newRig(b)
	rc := newReceiver(b, func(http.ResponseWriter, *http.Request) {})
	endpoints := make([]uuid.UUID, 100)
	for i := range endpoints {
		endpoints[i] = r.endpoint(rc.URL, quick)
	}
	c := r.config("bench")
	c.Concurrency, c.Log = 64, nil
	w, stop := r.start(c)
	submit := command.NewSubmitter(r.Ledger, command.SubmitOptions{Isolable: postgres.Isolable, Accepted: w.Hint})
	defer submit.Close()
	by := command.Caller{Tenant: domain.DefaultTenant, Actor: "key:bench"}
	b.ResetTimer()
	start := time.Now()
	for done := 0; done < b.N; {
		subs := make([]command.Submission, min(500, b.N-done))
		for i := range subs {
			subs[i] = command.Submission{EndpointID: endpoints[i%100], EventType: "bench", ContentType: "text/plain", Payload: []byte("0123456789")}
		}
		for _, a := range submit.SubmitBatch(b.Context(), by, subs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
		done += len(subs)
	}
	for {
		var left int
		if err := r.db.App.QueryRow(b.Context(), "select count(*) from waybill.deliveries where state <> 'delivered'").Scan(&left); err != nil {
			b.Fatal(err)
		}
		if left == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "deliveries/s")
	stop()
}
