package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"waybill/adapters/postgres/postgrestest"
)

// TestAdoptGuide follows `waybill help adopt` word by word on an empty database: every
// line that begins with $, in one shell. Only the names of the roles and the port are
// this machine's.
func TestAdoptGuide(t *testing.T) {
	t.Parallel()
	guide, err := guides.ReadFile("help/adopt.md")
	if err != nil {
		t.Fatal(err)
	}
	db := postgrestest.Empty(t)
	p := newProvider(t, func(context.Context, string) int { return http.StatusOK })
	script := strings.NewReplacer("waybill_app", "waybill_test_app", "--outbox-role crm", "--outbox-role waybill_test_app",
		"127.0.0.1:8080", freeAddress(t)).Replace(commandsOf(string(guide)))
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const prologue, epilogue = "set -euo pipefail\ntrap 'kill $(jobs -p); wait' EXIT\n", `
until [ "$(waybill deliveries list --state delivered --limit 0 --json | wc -l)" = 2 ]; do sleep 0.2; done
waybill deliveries list --endpoint $E
waybill deliveries events $(waybill deliveries list --idempotency-key lead-2-signup --json | sed 's/.*"id":"\([^"]*\)".*/\1/')
`
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", prologue+script+epilogue)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), patience
	cmd.Env = append(os.Environ(), "OWNER_URL="+db.OwnerURL, "APP_URL="+db.URL, "CRM_URL="+db.OwnerURL,
		"PROVIDER_URL="+p.URL, "WAYBILL_SRC="+source, "WORKER_NAME=guide", "WAIT=1", "no_proxy=*", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	for _, says := range []string{"1 imported, 0 duplicates", "delivered by another system at 2025-03-01T12:00:00.000000Z: imported",
		"can only add to the log", "delivery.claimed", "proven by attempt 1"} {
		if !strings.Contains(string(out), says) {
			t.Errorf("not said: %s\n%s", says, out)
		}
	}
	if n := p.total(); n != 1 {
		t.Errorf("the provider was called %d times, once is right", n)
	}
}

// commandsOf are a guide's lines for a shell.
func commandsOf(guide string) string {
	var b strings.Builder
	for line := range strings.Lines(guide) {
		if command, ok := strings.CutPrefix(line, "    $ "); ok {
			b.WriteString(command)
		}
	}
	return b.String()
}

// freeAddress is an address that nobody listens at: of a loopback network that the
// machine's own connections do not come from, so that none takes it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(250), rand.N(250), 1+rand.N(250)))
	if err != nil { // not every system has the whole network
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
