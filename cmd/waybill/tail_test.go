package main

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"waybill/adapters/postgres"
)

// TestFollowingTheLog: who follows gets what is sealed later, and Ctrl-C ends it without
// complaint.
func TestFollowingTheLog(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	ledger := postgres.Open(o.db.App, postgres.Config{})
	seal := func() {
		t.Helper()
		if err := sealAll(t.Context(), ledger); err != nil {
			t.Fatal(err)
		}
	}
	endpoint := o.get("id", "endpoints", "create", "--url", "https://receiver.example/a")
	seal()
	cmd := o.command("events", "tail", "--follow", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(name string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), `"name":"`+name+`"`) {
			t.Errorf("not %s: %s %v", name, lines.Text(), lines.Err())
		}
	}
	next("endpoint.created")
	o.run("endpoints", "pause", endpoint)
	seal()
	next("endpoint.paused")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("more: %s", lines.Text())
	}
	if err := cmd.Wait(); err != nil || complaint.Len() > 0 {
		t.Errorf("%v: %s", err, complaint.String())
	}
}
