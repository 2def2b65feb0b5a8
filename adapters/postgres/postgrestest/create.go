package postgrestest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// create clones a template for one test on the server that a superuser's URL names.
func create(t testing.TB, server string, from template) *DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := "waybill_test_" + strings.ToLower(rand.Text()[:12])
	if err := from.clone(ctx, server, name); err != nil {
		t.Fatalf("postgrestest: %v", err)
	}
	db := &DB{
		URL:      urlFor(server, appRole, name),
		OwnerURL: urlFor(server, ownerRole, name),
		SuperURL: urlFor(server, "", name),
		t:        t,
	}
	t.Cleanup(func() { drop(t, server, name) })
	db.App = openPool(t, db.URL)
	return db
}

// drop removes a test's database whoever is still connected to it.
func drop(t testing.TB, server, name string) {
	if keep(t) {
		t.Logf("postgrestest: kept %s", urlFor(server, "", name))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := as(ctx, server, func(conn *pgx.Conn) error {
		return run(ctx, conn, `DROP DATABASE IF EXISTS %s WITH (FORCE)`, name)
	})
	if err != nil {
		t.Errorf("postgrestest: %v", err)
	}
}

// urlFor is a server's URL with another role, empty for the same, and database.
func urlFor(server, role, database string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server // pgx said so already
	}
	if role != "" {
		u.User = url.UserPassword(role, passwordOf(server, role))
	}
	u.Path = "/" + database
	return u.String()
}

// as runs something on a connection of its own. None is kept open between tests,
// so that tests may count goroutines.
func as(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// run runs a statement that takes no parameters, only names.
func run(ctx context.Context, conn *pgx.Conn, statement string, names ...string) error {
	quoted := make([]any, len(names))
	for i, name := range names {
		quoted[i] = pgx.Identifier{name}.Sanitize()
	}
	statement = fmt.Sprintf(statement, quoted...)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
