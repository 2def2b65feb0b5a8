package sealer_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/adapters/witness"
	"waybill/domain"
	"waybill/events"
	"waybill/handlers/sealer"
)

// grow appends events and seals them.
func grow(t *testing.T, pool *pgxpool.Pool, n int) *postgres.Ledger {
	t.Helper()
	l := postgres.Open(pool, postgres.Config{})
	for range n {
		if _, err := pool.Exec(t.Context(), insert, uuid.New(), make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	s := sealer.New(sealer.Config{Ledger: l, Log: slog.New(slog.DiscardHandler)})
	if sealed, _, err := s.Round(t.Context()); err != nil || sealed < n {
		t.Fatal(sealed, err)
	}
	return l
}

// backup copies the database as it is and returns a pool on the copy, for the same role.
func backup(t *testing.T, db *postgrestest.DB) *pgxpool.Pool {
	t.Helper()
	u, err := url.Parse(db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	db.App.Reset()
	for _, sql := range []string{
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "'",
		`create database "` + name + `_older" template "` + name + `"`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		conn, err := pgx.Connect(ctx, u.String())
		if err == nil {
			_, err = conn.Exec(ctx, `drop database "`+name+`_older" with (force)`)
			err = errors.Join(err, conn.Close(ctx))
		}
		if err != nil {
			t.Error(err)
		}
	})
	older, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	older.Path += "_older"
	pool, err := postgres.Connect(t.Context(), older.String(), postgres.ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func keeper(t *testing.T) (*sealer.Witness, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "checkpoint")
	key, err := secrets.CreateSigningKey(filepath.Join(t.TempDir(), "key"), "test")
	if err != nil {
		t.Fatal(err)
	}
	return &sealer.Witness{Keeper: witness.File{Path: path}, Signer: key, Verifier: key.Verifier, Log: slog.New(slog.DiscardHandler)}, path
}

// TestOlderStateIsRefused: a database that was put back to an older state is noticed, also
// after it was written on, until a person accepts it; then positions go on beyond the lost
// ones, in a new epoch, and the log says who accepted what.
func TestOlderStateIsRefused(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]int{"as it was": 0, "and written on": 9} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.New(t)
			w, path := keeper(t)
			w.Ledger = grow(t, db.App, 3)
			if err := errors.Join(w.Check(t.Context()), w.Keep(t.Context())); err != nil {
				t.Fatal(err)
			}
			older := backup(t, db)
			w.Ledger = grow(t, db.App, 5)
			if err := errors.Join(w.Check(t.Context()), w.Keep(t.Context())); err != nil {
				t.Fatal(err)
			}
			lost, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < written; i += 3 {
				grow(t, older, 3)
			}
			l := postgres.Open(older, postgres.Config{})
			w.Ledger = l
			if err := w.Check(t.Context()); !errors.Is(err, domain.ErrRestored) {
				t.Fatalf("an older state was taken: %v", err)
			}
			if err := w.Run(t.Context()); !errors.Is(err, domain.ErrRestored) {
				t.Fatalf("an older state was kept: %v", err)
			}
			if err := w.Accept(t.Context(), "operator:a@b", ""); !errors.Is(err, domain.ErrInvalidRequest) {
				t.Errorf("accepted without a reason: %v", err)
			}
			if err := w.Accept(t.Context(), "operator:a@b", "the disk died"); err != nil {
				t.Fatal(err)
			}
			accepted(t, l, w, lost)
			if err := errors.Join(w.Check(t.Context()), w.Keep(t.Context())); err != nil {
				t.Error(err)
			}
			if aside, err := os.ReadFile(path + ".epoch-1"); err != nil || string(aside) != string(lost) {
				t.Errorf("the lost checkpoint was not set aside: %v", err)
			}
			grow(t, older, 1)
			if err := w.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func accepted(t *testing.T, l *postgres.Ledger, w *sealer.Witness, lost []byte) {
	t.Helper()
	was, err := events.OpenCheckpoint(lost, w.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	head, err := l.Head(t.Context())
	if err != nil || head.Epoch != 2 {
		t.Errorf("epoch %d: %v", head.Epoch, err)
	}
	drawn, err := l.Drawn(t.Context())
	if err != nil || drawn <= was.Last {
		t.Errorf("positions go on at %d, the lost ones ended at %d: %v", drawn, was.Last, err)
	}
	list, err := l.Sealed(t.Context(), 0, 1<<62, 1000)
	list = slices.DeleteFunc(list, func(r events.Record) bool { return r.Name != "admin.restore_accepted" })
	if err != nil || len(list) != 1 {
		t.Fatalf("the log says %+v: %v", list, err)
	}
	fact, err := list[0].Event()
	if r, ok := fact.(domain.RestoreAccepted); err != nil || !ok || r.Reason != "the disk died" || r.Epoch != 2 || r.LostLast != was.Last {
		t.Errorf("the log says %+v: %v", fact, err)
	}
}

// TestCheckpointOfAnother: a file of another ledger, of another key, or that is no
// checkpoint, is no witness.
func TestCheckpointOfAnother(t *testing.T) {
	t.Parallel()
	w, path := keeper(t)
	w.Ledger = grow(t, postgrestest.Pool(t), 1)
	if err := errors.Join(w.Check(t.Context()), w.Keep(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := w.Accept(t.Context(), "operator:a@b", "nothing to accept"); err != nil {
		t.Error(err)
	}
	if head, err := w.Ledger.Head(t.Context()); err != nil || head.Epoch != 1 {
		t.Errorf("epoch %d: %v", head.Epoch, err)
	}
	other, _ := keeper(t)
	other.Ledger, other.Keeper = w.Ledger, w.Keeper
	if err := other.Check(t.Context()); !errors.Is(err, domain.ErrCheckpointForeign) {
		t.Errorf("a checkpoint of another key: %v", err)
	}
	ledger := w.Ledger
	another := postgrestest.New(t)
	if _, err := another.Super().Exec(t.Context(), "update waybill.ledger_head set ledger = gen_random_uuid()"); err != nil {
		t.Fatal(err)
	}
	w.Ledger = grow(t, another.App, 1)
	if err := w.Check(t.Context()); !errors.Is(err, domain.ErrCheckpointForeign) {
		t.Errorf("a checkpoint of another ledger: %v", err)
	}
	w.Ledger = ledger
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Check(t.Context()); !errors.Is(err, domain.ErrCheckpointForeign) {
		t.Errorf("rubbish: %v", err)
	}
}
