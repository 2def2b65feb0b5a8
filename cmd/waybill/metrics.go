package main

import (
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"waybill/projections"
)

// metrics is what a node says of itself at /metrics. Every label has a closed set of
// values, none of which comes from a caller.
type metrics struct {
	registry    *prometheus.Registry
	submissions *prometheus.CounterVec // by code
	attempts    *prometheus.CounterVec // by outcome and reason
	duration    prometheus.Histogram   // of attempts
	sending     prometheus.Gauge
	claims      prometheus.Counter
	claimed     prometheus.Counter
	stale       prometheus.Counter
	superseded  prometheus.Counter
	expired     prometheus.Counter
	outbox      *prometheus.CounterVec // by what became of the row
	requests    *prometheus.CounterVec // by method and status code
	answering   prometheus.Gauge
	blocks      prometheus.Counter
	sealedTotal prometheus.Counter
	held        prometheus.Gauge
	lag         *prometheus.GaugeVec // by projection
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		submissions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waybill_submissions_total",
			Help: "Messages handed in, by what they were answered: accepted, duplicate, or a refusal's code."}, []string{"code"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waybill_attempts_total",
			Help: "Requests made by this process, by outcome and reason, recorded or not yet."}, []string{"outcome", "reason"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "waybill_attempt_duration_seconds",
			Help: "How long requests took.", Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}),
		sending:    gauge("waybill_attempts_in_flight", "Requests on the wire."),
		claims:     counter("waybill_claims_total", "Claims that brought a delivery."),
		claimed:    counter("waybill_claimed_deliveries_total", "Deliveries claimed."),
		stale:      counter("waybill_stale_appends_total", "Appends refused because the stream had moved on; they are decided again."),
		superseded: counter("waybill_superseded_results_total", "Results recorded for claims that had ended."),
		expired:    counter("waybill_expired_claims_total", "Deliveries whose claim ran out and that this process recovered; their attempt is in doubt."),
		outbox: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waybill_outbox_rows_total",
			Help: "Rows of the outbox that this process moved into the log or refused; doctor shows the refused ones by code."}, []string{"result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waybill_http_requests_total",
			Help: "Requests answered, by method and status."}, []string{"method", "code"}),
		answering:   gauge("waybill_http_requests_in_flight", "Requests being answered."),
		blocks:      counter("waybill_sealings_total", "Times that this process moved the horizon."),
		sealedTotal: counter("waybill_sealed_events_total", "Events that this process sealed."),
		held:        gauge("waybill_horizon_held_seconds", "How old the oldest transaction is that holds the horizon back; 0: none does. A prepared transaction counts as 1."),
	}
	m.lag = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "waybill_projection_lag_events",
		Help: "Positions of the sealed log that an asynchronous projection has before it; one that stopped stays and lags more and more."}, []string{"projection"})
	m.registry.MustRegister(m.lag, m.submissions, m.attempts, m.duration, m.sending, m.claims, m.claimed, m.stale, m.superseded,
		m.expired, m.outbox, m.requests, m.answering, m.blocks, m.sealedTotal, m.held, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "waybill_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": thisBuild().Version}})
	build.Set(1)
	m.registry.MustRegister(build)
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// observe adds what is read when it is asked for: what waits to be recorded, and the
// connections to the database.
func (m *metrics) observe(backlog func() (int, time.Duration), pool *pgxpool.Pool) {
	now := func(name, help string, read func() float64, labels prometheus.Labels) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
	}
	now("waybill_results_unrecorded", "Results of requests that wait to be recorded.", func() float64 {
		n, _ := backlog()
		return float64(n)
	}, nil)
	now("waybill_results_unrecorded_oldest_seconds", "How long the oldest of them has waited.", func() float64 {
		_, longest := backlog()
		return longest.Seconds()
	}, nil)
	const conns = "waybill_database_connections"
	now(conns, "Connections to the database.", func() float64 { return float64(pool.Stat().AcquiredConns()) }, prometheus.Labels{"state": "in_use"})
	now(conns, "Connections to the database.", func() float64 { return float64(pool.Stat().IdleConns()) }, prometheus.Labels{"state": "idle"})
	now(conns+"_max", "Connections to the database at most.", func() float64 { return float64(pool.Stat().MaxConns()) }, nil)
}

// outboxRows counts rows of the outbox.
func (m *metrics) outboxRows(moved, refused int) {
	m.outbox.WithLabelValues("moved").Add(float64(moved))
	m.outbox.WithLabelValues("refused").Add(float64(refused))
}

// sealed counts what the sealer closed.
func (m *metrics) sealed(_ projections.Head, events int) {
	m.blocks.Inc()
	m.sealedTotal.Add(float64(events))
}

// heldBack shows who the sealer waits for.
func (m *metrics) heldBack(by []projections.Appender) {
	oldest := 0.0
	for _, a := range by {
		if a.Prepared() {
			oldest = max(oldest, 1)
		}
		oldest = max(oldest, a.Age.Seconds())
	}
	m.held.Set(oldest)
}

// projected shows how far the asynchronous projections are.
func (m *metrics) projected(list []projections.ProjectionStatus) {
	for _, p := range list {
		if p.Position != nil {
			m.lag.WithLabelValues(p.Name).Set(float64(p.Lag))
		}
	}
}

// page answers /metrics.
func (m *metrics) page() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// counting counts what a handler answers.
func (m *metrics) counting(h http.Handler) http.Handler {
	return promhttp.InstrumentHandlerInFlight(m.answering, promhttp.InstrumentHandlerCounter(m.requests, h))
}
