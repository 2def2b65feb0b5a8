package postgrestest

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"waybill/adapters/embedded"
)

func text(t *testing.T, pool *pgxpool.Pool, query string) (answer string) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// pretend is a test that can end, or fail, before ours does.
type pretend struct {
	testing.TB
	failed   bool
	said     []string
	cleanups []func()
}

func (p *pretend) Helper()           {}
func (p *pretend) Failed() bool      { return p.failed }
func (p *pretend) Cleanup(do func()) { p.cleanups = append(p.cleanups, do) }

func (p *pretend) Logf(format string, args ...any) {
	p.said = append(p.said, fmt.Sprintf(format, args...))
}

func (p *pretend) Errorf(format string, args ...any) {
	p.Logf(format, args...)
	p.failed = true
}

// end runs the cleanups, the last one first.
func (p *pretend) end() {
	for i := len(p.cleanups) - 1; i >= 0; i-- {
		p.cleanups[i]()
	}
}

// nameOf is the name of a test's database.
func nameOf(t *testing.T, db *DB) string {
	t.Helper()
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	a, b := New(t), New(t)
	if x, y := text(t, a.App, "SELECT current_database()"), text(t, b.App, "SELECT current_database()"); x == y {
		t.Errorf("two tests share %s", x)
	}
	if got := text(t, a.App, "SELECT current_user"); got != appRole {
		t.Errorf("the product runs as %s", got)
	}
	if got := text(t, a.Owner(), "SELECT current_user"); got != ownerRole {
		t.Errorf("the owner is %s", got)
	}
	for want, pool := range map[string]*pgxpool.Pool{"off": a.Owner(), "on": a.Super()} {
		if got := text(t, pool, "SHOW is_superuser"); got != want {
			t.Errorf("is_superuser = %s, want %s", got, want)
		}
	}
	if got := text(t, a.Super(), "SHOW server_encoding"); got != "UTF8" {
		t.Errorf("encoding %s", got)
	}
}

func TestProductCannotChangeTheSchema(t *testing.T) {
	t.Parallel()
	db := Empty(t)
	if _, err := db.App.Exec(t.Context(), "CREATE TABLE t ()"); err == nil {
		t.Error("the product's role made a table")
	}
	if _, err := db.Owner().Exec(t.Context(), "CREATE TABLE t ()"); err != nil {
		t.Errorf("the owner: %v", err)
	}
}

func TestDatabaseEndsWithItsTest(t *testing.T) {
	here := New(t).Super()
	for _, tt := range []struct {
		failed bool
		keep   string
		stays  bool
	}{
		{failed: false, keep: "1", stays: false},
		{failed: true, keep: "", stays: false},
		{failed: true, keep: "1", stays: true},
	} {
		t.Setenv("WAYBILL_TEST_KEEP", tt.keep)
		test := &pretend{TB: t, failed: tt.failed}
		db := Empty(test)
		test.end()
		name := nameOf(t, db)
		if got := text(t, here, "SELECT (count(*) > 0)::text FROM pg_database WHERE datname = '"+name+"'"); got != strconv.FormatBool(tt.stays) {
			t.Errorf("%+v: stays = %s; %v", tt, got, test.said)
		}
		t.Setenv("WAYBILL_TEST_KEEP", "")
		drop(t, sharedURL(t), name)
	}
}

func TestForgottenConnectionIsReported(t *testing.T) {
	t.Parallel()
	test := &pretend{TB: t}
	pool := openPool(test, New(t).URL)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closePool(test, pool, 50*time.Millisecond)
	if want := "1 connections were never given back"; !test.failed || !strings.Contains(test.said[0], want) {
		t.Errorf("said %q, want %q", test.said, want)
	}
	conn.Release()
}

func TestNoGoroutineIsLeft(t *testing.T) {
	test := &pretend{TB: t}
	before := goleak.IgnoreCurrent()
	text(t, New(test).App, "SELECT 'used'")
	test.end()
	goleak.VerifyNone(t, before)
}

func TestServerOfATestsOwn(t *testing.T) {
	t.Parallel()
	s := Server(t, embedded.Config{})
	db := NewOn(t, s)
	if _, err := db.Owner().Exec(t.Context(), "CREATE TABLE survived ()"); err != nil {
		t.Fatal(err)
	}
	if err := s.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := text(t, db.Super(), "SELECT to_regclass('survived')::text"); got != "survived" {
		t.Errorf("after a crash: %s", got)
	}
}
