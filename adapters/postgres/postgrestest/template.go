package postgrestest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"

	"waybill/adapters/postgres"
	"waybill/migrations"
)

// setupLock is an advisory lock of the server's maintenance database: roles and
// templates are made by one process while the others wait.
const setupLock = 0x77617962_696c6c // "waybill"

// template is what the databases of tests are cloned from. The zero value is
// PostgreSQL's own, an empty database.
type template struct {
	key     string // changes with what migrate does
	migrate Migrator
}

// Migrator fills an empty database, as the role that the URL names.
type Migrator func(ctx context.Context, databaseURL string) error

// migrated is the template with the product's schema. This is the one place that
// knows what the product's migrations are and how they are applied. The month
// belongs to the key, as migrating makes the partitions of the months ahead.
func migrated() template {
	return template{
		key: fingerprint(migrations.FS) + time.Now().UTC().Format("2006-01"),
		migrate: func(ctx context.Context, ownerURL string) error {
			return postgres.Migrate(ctx, ownerURL, postgres.MigrateOptions{AppRole: appRole})
		},
	}
}

// fingerprint changes with the name or the text of any migration.
func fingerprint(migrations fs.FS) string {
	sum := sha256.New()
	_ = fs.WalkDir(migrations, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(migrations, path)
		fmt.Fprintf(sum, "%q %q\n", path, text)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// name tells the template of one state of the migrations from that of another, as
// a server may outlive both. It changes with the superuser's password too, so that
// the roles get theirs again.
func (tm template) name(server string) string {
	if tm.migrate == nil {
		return "template0"
	}
	sum := sha256.Sum256([]byte(tm.key + passwordOf(server, ownerRole)))
	return "waybill_template_" + hex.EncodeToString(sum[:6])
}

// clone makes a database from the template, which it makes if it is not there.
func (tm template) clone(ctx context.Context, server, name string) error {
	return as(ctx, server, func(conn *pgx.Conn) error {
		ready, err := tm.ready(ctx, server, conn)
		if err == nil && !ready {
			err = tm.prepare(ctx, server, conn)
		}
		if err != nil {
			return err
		}
		how, err := strategy(ctx, conn)
		if err != nil {
			return err
		}
		return run(ctx, conn, `CREATE DATABASE %s TEMPLATE %s OWNER %s ENCODING 'UTF8' STRATEGY %s`,
			name, tm.name(server), ownerRole, how)
	})
}

// strategy is the quickest way to clone: copying files costs two checkpoints, which
// are nothing on a server that does not sync, such as ours.
func strategy(ctx context.Context, conn *pgx.Conn) (how string, err error) {
	err = conn.QueryRow(ctx, `SELECT CASE current_setting('fsync') WHEN 'off' THEN 'file_copy' ELSE 'wal_log' END`).Scan(&how)
	return how, err
}

// ready says whether the roles and the template are there. A database becomes a
// template when it is whole.
func (tm template) ready(ctx context.Context, server string, conn *pgx.Conn) (ready bool, err error) {
	err = conn.QueryRow(ctx, `SELECT (SELECT count(*) = 2 FROM pg_roles WHERE rolname IN ($1, $2))
		AND EXISTS (SELECT FROM pg_database WHERE datname = $3 AND datistemplate)`,
		ownerRole, appRole, tm.name(server)).Scan(&ready)
	return ready, err
}

// prepare makes roles and template, once for all processes.
func (tm template) prepare(ctx context.Context, server string, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(setupLock)); err != nil {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(setupLock))
	ready, err := tm.ready(ctx, server, conn)
	if err != nil || ready {
		return err
	}
	err = errors.Join(ensureRole(ctx, conn, server, ownerRole), ensureRole(ctx, conn, server, appRole))
	if err != nil || tm.migrate == nil {
		return err
	}
	return tm.build(ctx, server, conn)
}

// build makes the template. Nobody can connect to it afterwards: a database with
// connections cannot be cloned.
func (tm template) build(ctx context.Context, server string, conn *pgx.Conn) error {
	name := tm.name(server)
	if err := run(ctx, conn, `DROP DATABASE IF EXISTS %s WITH (FORCE)`, name); err != nil {
		return err
	}
	if err := run(ctx, conn, `CREATE DATABASE %s TEMPLATE template0 OWNER %s ENCODING 'UTF8'`, name, ownerRole); err != nil {
		return err
	}
	if err := tm.migrate(ctx, urlFor(server, ownerRole, name)); err != nil {
		return fmt.Errorf("migrate the template: %w", err)
	}
	return run(ctx, conn, `ALTER DATABASE %s IS_TEMPLATE true ALLOW_CONNECTIONS false`, name)
}
