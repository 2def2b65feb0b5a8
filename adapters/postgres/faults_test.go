package postgres_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/projections"
)

// TestFaultsAreToldApart walks the kinds of fault that decide what is tried again.
func TestFaultsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                         error
		transient, unsure, isolable bool
	}{
		{nil, false, false, false},
		{&pgconn.PgError{Code: "40001"}, true, false, true},
		{&pgconn.PgError{Code: "40P01"}, true, false, true},
		{&pgconn.PgError{Code: "57014"}, true, false, true},
		{&pgconn.PgError{Code: "57P01"}, true, false, false},
		{&pgconn.PgError{Code: "53100"}, true, false, false},
		{&pgconn.PgError{Code: "53300"}, true, false, false},
		{&pgconn.PgError{Code: "25006"}, true, false, false},
		{&pgconn.PgError{Code: "22P05"}, false, false, true},
		{&pgconn.PgError{Code: "42501"}, false, false, true},
		{&net.OpError{Op: "read", Err: net.ErrClosed}, true, true, false},
		{context.DeadlineExceeded, true, true, false},
		{context.Canceled, false, true, false},
		{domain.ErrOutsidePartitions, false, false, true},
	} {
		if postgres.Transient(c.err) != c.transient || postgres.Unsure(c.err) != c.unsure || postgres.Isolable(c.err) != c.isolable {
			t.Errorf("%v: transient %v, unsure %v, isolable %v", c.err, postgres.Transient(c.err), postgres.Unsure(c.err), postgres.Isolable(c.err))
		}
	}
}

// wire is a proxy to PostgreSQL that can swallow the answers from a moment on and
// then cut the connection: the server has acted and nobody was told.
type wire struct {
	net.Listener
	deaf  atomic.Bool
	conns sync.WaitGroup
}

func newWire(t *testing.T, to string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.conns.Go(func() { w.pipe(c, to) })
		}
	}()
	t.Cleanup(func() { _ = l.Close(); w.conns.Wait() })
	return w
}

func (w *wire) pipe(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	var ended sync.WaitGroup
	ended.Go(func() { w.copy(server, client, false) })
	ended.Go(func() { w.copy(client, server, true) })
	ended.Wait()
}

func (w *wire) copy(dst, src net.Conn, answers bool) {
	defer func() { _, _ = dst.Close(), src.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		if answers && w.deaf.Load() {
			time.Sleep(50 * time.Millisecond) // the server has acted by now
			w.deaf.Store(false)
			return
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestLostAnswerOfACommit: the connection dies with the commit's answer on its way.
// The submission and the claim have happened, and that is what their callers are
// told: nothing is handed in twice, no delivery is left in doubt that was never sent.
func TestLostAnswerOfACommit(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.endpoint()
	cfg, err := pgxpool.ParseConfig(f.db.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, net.JoinHostPort(cfg.ConnConfig.Host, strconv.Itoa(int(cfg.ConnConfig.Port))))
	at := w.Addr().(*net.TCPAddr)
	cfg.ConnConfig.Host, cfg.ConnConfig.Port = "127.0.0.1", uint16(at.Port)
	cfg.ConnConfig.TLSConfig = nil
	var commits atomic.Int64 // COMMITs still to be answered
	cfg.ConnConfig.Tracer = commitTracer{func() {
		if commits.Add(-1) == 0 {
			w.deaf.Store(true)
		}
	}}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	l := postgres.Open(pool, postgres.Config{Vault: vault})
	now := f.now()
	s := f.draft(e.ID, now, "k")
	commits.Store(1)
	answers, err := l.Schedule(t.Context(), []projections.Submission{s}, now)
	if err != nil || answers[0].MessageID != s.Message.ID || answers[0].Duplicate {
		t.Fatalf("submission: %+v %v", answers, err)
	}
	if got := len(f.stream(s.Deliveries[0].After.ID)); got != 1 {
		t.Errorf("%d events", got)
	}
	f2 := fixture{postgres.Open(pool, postgres.Config{Vault: vault}), t, f.db}
	e2 := f2.endpoint()
	f2.schedule(e2.ID, 1)
	commits.Store(1)
	if b := f2.claim(e2.ID, 1, time.Minute); len(b.Taken) != 1 {
		t.Errorf("claim: %+v", b)
	}
	f.verify()
}

// commitTracer calls back as a COMMIT is about to be sent.
type commitTracer struct{ committing func() }

func (c commitTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if q.SQL == "commit" {
		c.committing()
	}
	return ctx
}

func (commitTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestReadOnlyConnectionIsGivenUp: after a failover a pool's connection may lead to a
// server that is read-only now, and stay open. It is closed on the first refusal, so that
// the next one leads to the primary. It fails without closes.
func TestReadOnlyConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	f := open(t)
	name := f.db.Super().Config().ConnConfig.Database
	set := func(how string) {
		if _, err := f.db.Super().Exec(t.Context(), "alter role waybill_test_app in database "+name+" "+how); err != nil {
			t.Fatal(err)
		}
	}
	set("set default_transaction_read_only = on")
	pool, err := postgres.Connect(t.Context(), f.db.URL, postgres.ConnectOptions{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	beat := func() error {
		_, err := postgres.Open(pool, postgres.Config{}).Beat(t.Context(), postgres.NewID(f.now()), "w", time.Minute)
		return err
	}
	if err := beat(); code(err) != "25006" {
		t.Fatalf("on a standby: %v", err)
	}
	set("reset default_transaction_read_only")
	if err := beat(); err != nil {
		t.Errorf("after the failover: %v", err)
	}
}
