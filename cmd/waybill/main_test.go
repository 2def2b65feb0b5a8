package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/handlers/sealer"
)

// TestMain lets the test binary be the program: scripts, and tests that need a
// process, find it as waybill in PATH, and [racer] beside it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"waybill": func() { os.Exit(start()) }, "racer": racer})
}

// TestScripts runs testdata/*.txtar, each on databases of its own:
//
//	WAYBILL_DATABASE_URL  migrated, as the application's role
//	APP_URL               the same again
//	OWNER_URL             the same, as the schema's owner
//	EMPTY_URL             another one, not migrated, as its owner
//	WRONG_URL             WAYBILL_DATABASE_URL with another password, wr0ng5ecret
//
// Beside the commands of testscript there are
//
//	field NAME KEY      sets NAME to a member of the last line of stdout, a JSON object
//	members KEY...      requires exactly these members of each line of stdout; ? may be missing
//	exit N waybill ...  requires the exit code
//	seal                closes blocks up to the last event
//	past MONTH N W E    hands in N messages in a month of the past, all but W of them ended
//	edit FILE OLD NEW   replaces text in a file, which must be there once or more
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			db, empty := postgrestest.New(t), postgrestest.Empty(t)
			testscript.Run(t, testscript.Params{
				Files: []string{script}, RequireUniqueNames: true, RequireExplicitExec: true,
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"field": setField, "members": requireMembers, "exit": requireExit, "seal": sealLog, "edit": editFile, "past": handPast,
				},
				Setup: func(e *testscript.Env) error {
					e.Setenv("WAYBILL_DATABASE_URL", db.URL)
					e.Setenv("APP_URL", db.URL)
					e.Setenv("OWNER_URL", db.OwnerURL)
					e.Setenv("EMPTY_URL", empty.OwnerURL)
					e.Setenv("WRONG_URL", strings.Replace(db.URL, passwordsOf(db.URL)[0], "wr0ng5ecret", 1))
					return nil
				},
			})
		})
	}
}

func lastLine(ts *testscript.TestScript) map[string]any {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	var v map[string]any
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &v))
	return v
}

func setField(ts *testscript.TestScript, _ bool, args []string) {
	v, ok := lastLine(ts)[args[1]]
	if !ok {
		ts.Fatalf("stdout has no member %s", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

func requireMembers(ts *testscript.TestScript, _ bool, keys []string) {
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var v map[string]any
		ts.Check(json.Unmarshal([]byte(line), &v))
		for _, key := range keys {
			name, optional := strings.CutSuffix(key, "?")
			if _, ok := v[name]; !ok && !optional {
				ts.Fatalf("%s has no member %s", line, name)
			}
			delete(v, name)
		}
		if len(v) > 0 {
			ts.Fatalf("members that nobody knows: %v", v)
		}
	}
}

// sealLog does what any running node does.
func sealLog(ts *testscript.TestScript, _ bool, _ []string) {
	ctx := context.Background()
	pool, err := postgres.Connect(ctx, ts.Getenv("WAYBILL_DATABASE_URL"), postgres.ConnectOptions{MaxConns: 2})
	ts.Check(err)
	defer pool.Close()
	ts.Check(sealAll(ctx, postgres.Open(pool, postgres.Config{})))
}

// sealAll closes blocks up to the last event there is now.
func sealAll(ctx context.Context, l *postgres.Ledger) error {
	drawn, err := l.Drawn(ctx)
	if err != nil {
		return err
	}
	closer := sealer.New(sealer.Config{Ledger: l, Log: slog.New(slog.DiscardHandler)})
	for {
		if _, _, err := closer.Round(ctx); err != nil {
			return err
		}
		if head, err := l.Head(ctx); err != nil || head.Last >= drawn {
			return err
		}
	}
}

func editFile(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	text, err := os.ReadFile(path)
	ts.Check(err)
	if !strings.Contains(string(text), args[1]) {
		ts.Fatalf("%s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, []byte(strings.Replace(string(text), args[1], args[2], 1)), 0o600))
}

// requireExit runs the program and compares its exit code.
func requireExit(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		if _, scanErr := fmt.Sscanf(err.Error(), "exit status %d", &got); scanErr != nil {
			ts.Fatalf("%v", err)
		}
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
