package main

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
)

// TestNodeLeavesNothing starts and stops a node in this process and counts what is
// left. It is not parallel, so that nobody else's goroutines are counted.
func TestNodeLeavesNothing(t *testing.T) {
	db := postgrestest.New(t)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	for _, c := range []nodeConfig{
		{API: true, Worker: true, Listen: "127.0.0.1:0"},
		{API: true, Listen: "127.0.0.1:0"},
		{Worker: true},
	} {
		c.DatabaseURL, c.Vault, c.Log = db.URL, vault, slog.New(slog.DiscardHandler)
		c.WorkerName, c.Drain = "w", 5*time.Second
		n, err := startNode(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if c.API {
			resp, err := http.Get("http://" + n.Addr() + "/readyz")
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%v %v", resp, err)
			}
			_ = resp.Body.Close()
		}
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

// TestNodeThatCannotStart undoes what it had begun.
func TestNodeThatCannotStart(t *testing.T) {
	db, empty := postgrestest.New(t), postgrestest.Empty(t)
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	for _, c := range []nodeConfig{
		{DatabaseURL: db.URL, API: true, Worker: true, Listen: "127.0.0.1:99999"},
		{DatabaseURL: empty.OwnerURL, Worker: true},
		{DatabaseURL: "postgres://nobody@127.0.0.1:1/db", Worker: true},
	} {
		c.Vault, c.Log, c.Drain = vault, slog.New(slog.DiscardHandler), time.Second
		if n, err := startNode(t.Context(), c); err == nil {
			t.Errorf("%+v started", c)
			_ = n.Stop()
		}
	}
	goleak.VerifyNone(t, before)
}

// TestStatements prepares this package's SQL against the migrated schema.
func TestStatements(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t)
	for _, sql := range []string{getNewestSecret} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
