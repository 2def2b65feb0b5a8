package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// fresh is a template that no other test has.
func fresh(t *testing.T, do Migrator) template {
	t.Helper()
	tm := template{key: rand.Text(), migrate: do}
	t.Cleanup(func() {
		err := as(context.Background(), sharedURL(t), func(conn *pgx.Conn) error {
			name := tm.name(sharedURL(t))
			err := run(context.Background(), conn, `ALTER DATABASE %s IS_TEMPLATE false`, name)
			return errors.Join(err, run(context.Background(), conn, `DROP DATABASE %s`, name))
		})
		if err != nil {
			t.Error(err)
		}
	})
	return tm
}

func createTable(ctx context.Context, ownerURL string) error {
	return as(ctx, ownerURL, func(conn *pgx.Conn) error {
		return run(ctx, conn, `CREATE TABLE %s ()`, "migrated")
	})
}

func TestTemplateIsMadeOnce(t *testing.T) {
	t.Parallel()
	var times atomic.Int32
	tm := fresh(t, func(ctx context.Context, ownerURL string) error {
		times.Add(1)
		return createTable(ctx, ownerURL)
	})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			db := create(t, sharedURL(t), tm)
			if got := text(t, db.App, "SELECT tableowner::text FROM pg_tables WHERE tablename = 'migrated'"); got != ownerRole {
				t.Errorf("the migrations' table belongs to %s", got)
			}
		})
	}
	all.Wait()
	if times.Load() != 1 {
		t.Errorf("migrated %d times", times.Load())
	}
}

func TestBrokenTemplateIsMadeAgain(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken migration")
	tm := fresh(t, func(ctx context.Context, ownerURL string) error {
		return errors.Join(createTable(ctx, ownerURL), broken)
	})
	err := tm.clone(t.Context(), sharedURL(t), "waybill_test_never")
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "migrate the template") {
		t.Errorf("error %v", err)
	}
	tm.migrate = createTable
	create(t, sharedURL(t), tm)
}
