package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/projections"
)

// TestEveryStatementPrepares parses and plans every SQL file against the migrated
// schema, as the application's role and in a schema of another name too.
func TestEveryStatementPrepares(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	const other projections.Schema = "ledger_2"
	err := postgres.Migrate(t.Context(), db.OwnerURL, postgres.MigrateOptions{Schema: other, AppRole: "waybill_test_app"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../projections/sql/*.sql")
	if err != nil || len(files) < 20 || len(more) < 5 {
		t.Fatalf("%d and %d files: %v", len(files), len(more), err)
	}
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, path := range append(files, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			t.Errorf("%s does not open with a comment", path)
		}
		for _, schema := range []projections.Schema{projections.DefaultSchema, other} {
			sql, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), conn, schema.SQL(string(text)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if schema == other && strings.Contains(sql, "waybill.") {
				t.Errorf("%s names the default schema in another", path)
			}
			if _, err := conn.Prepare(t.Context(), "", sql); err != nil {
				t.Errorf("%s in %s: %v", path, schema, err)
			}
		}
	}
}
