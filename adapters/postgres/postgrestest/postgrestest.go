// Package postgrestest gives each test a PostgreSQL database of its own.
//
//	func TestStaleWriterIsRefused(t *testing.T) {
//		t.Parallel()
//		log := postgres.Open(postgrestest.Pool(t))
//		…
//	}
//
// The database is a clone of a template that the migrations were applied to once,
// which takes some 50 ms, and is dropped when the test ends. With
// WAYBILL_TEST_KEEP=1 that of a failed test stays, and its URL is logged.
//
// Tests run as the product does: [DB.App] connects as waybill_test_app, who may do
// what the migrations grant it. The schema belongs to waybill_test_owner, who
// applied them ([DB.Owner]); [DB.Super] is for looking behind the curtain.
//
// Nothing needs to be set up. One server serves a whole `go test ./...`, however
// many processes that is, and ends with its last user, even one that was killed;
// see shared.go. Where it comes from is for [embedded.Resolve] to say:
//
//	WAYBILL_TEST_DATABASE_URL     a superuser's URL of a running server
//	installed binaries            15 or later
//	Docker                        the image $WAYBILL_TEST_POSTGRES_IMAGE, else postgres:17-alpine
//	download
//
// WAYBILL_TEST_DOOR=url|installed|docker|download forces one. A test whose database
// cannot be had fails; it is never skipped.
//
// Tests of package postgres itself belong in package postgres_test, as this one
// imports it to migrate and to connect.
//
// The field's library for this, pgtestdb, is not used: it keeps one record of roles
// and templates for a process whatever the server, which rules out servers of a
// test's own; it has one role where we have two; and it keeps every failed test's
// database.
package postgrestest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/embedded"
	"waybill/adapters/postgres"
)

const (
	patience = time.Minute     // for one step of making or dropping a database
	maxConns = 16              // of each pool
	leakWait = 5 * time.Second // for connections that a test did not give back
)

// DB is a test's own database.
type DB struct {
	// App is a pool of the role that the product runs as.
	App *pgxpool.Pool
	// URL is for that role, OwnerURL for the schema's owner, SuperURL for a superuser.
	URL, OwnerURL, SuperURL string

	t testing.TB
}

// Pool is New(t).App.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return New(t).App
}

// New returns a migrated database on the server that all tests share.
func New(t testing.TB) *DB {
	t.Helper()
	return create(t, sharedURL(t), migrated())
}

// Empty is New without the migrations: a database that the owner may fill.
func Empty(t testing.TB) *DB {
	t.Helper()
	return create(t, sharedURL(t), template{})
}

// NewOn is New on a server of the test's own.
func NewOn(t testing.TB, s *embedded.Server) *DB {
	t.Helper()
	return create(t, s.URL(), migrated())
}

// Server starts a server of the test's own, for tests that restart or kill it.
// Binaries are the installed ones, else they are downloaded.
func Server(t testing.TB, cfg embedded.Config) *embedded.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := embedded.Find(cfg.BinDir); err != nil {
		bin, fetchErr := embedded.Download(ctx)
		if fetchErr != nil {
			t.Fatalf("postgrestest: a server of the test's own: %v; %v", err, fetchErr)
		}
		cfg.BinDir = bin.Dir
	}
	s, err := embedded.Start(ctx, cfg)
	if err != nil {
		t.Fatalf("postgrestest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("postgrestest: %v", err)
		}
	})
	return s
}

// Owner is a pool of the role that owns the schema.
func (db *DB) Owner() *pgxpool.Pool {
	db.t.Helper()
	return openPool(db.t, db.OwnerURL)
}

// Super is a pool of a superuser.
func (db *DB) Super() *pgxpool.Pool {
	db.t.Helper()
	return openPool(db.t, db.SuperURL)
}

// openPool opens a pool, with the limits that the product's connections have, that
// is closed with the test.
func openPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Connect(context.Background(), url, postgres.ConnectOptions{MaxConns: maxConns})
	if err != nil {
		t.Fatalf("postgrestest: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool, leakWait) })
	return pool
}

// closePool does not wait for ever, as Close would, for a connection that the test
// forgot.
func closePool(t testing.TB, pool *pgxpool.Pool, patience time.Duration) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Errorf("postgrestest: %d connections were never given back to the pool", pool.Stat().AcquiredConns())
	}
}

// keep says whether the database of a test stays for a look at it.
func keep(t testing.TB) bool {
	return t.Failed() && os.Getenv("WAYBILL_TEST_KEEP") == "1"
}
