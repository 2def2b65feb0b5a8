package postgres

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib" // database/sql, which goose speaks
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"waybill/domain"
	"waybill/migrations"
	"waybill/projections"
)

//go:embed sql/get_schema_version.sql
var getSchemaVersion string

// partitionsAhead is how many months of partitions are made beyond the present one.
const partitionsAhead = 3

// migrateTimeout bounds one migration.
const migrateTimeout = 30 * time.Minute

// MigrateOptions is what a migration makes.
type MigrateOptions struct {
	Schema     projections.Schema // empty: waybill
	AppRole    string             // granted what the application needs and no more; empty: nobody
	OutboxRole string             // granted to insert into the outbox and nothing else; empty: nobody
	// AuditorRole is granted to read the views audit_… and nothing else; empty: nobody.
	AuditorRole string
	// ProjectionRole owns the projections from now on, so that rebuilding them needs no
	// right to add to the log; empty: whoever owns them. The migrating role must be a
	// member of it.
	ProjectionRole string
}

// Migrate brings a database's schema up to what this program knows, as the role that
// the URL names, which then owns it. It may run from many processes at once: one
// works, the others wait.
func Migrate(ctx context.Context, databaseURL string, o MigrateOptions) error {
	if o.Schema == "" {
		o.Schema = projections.DefaultSchema
	}
	if err := o.Schema.Check(); err != nil {
		return domain.ErrInvalidRequest.With(err.Error())
	}
	cfg, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return unreadable(err)
	}
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"application_name": "waybill migrate", "timezone": "UTC", "lock_timeout": millis(migrateTimeout),
		"statement_timeout": millis(migrateTimeout), "idle_in_transaction_session_timeout": millis(time.Minute),
	})
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	unlock, err := lockMigration(ctx, db)
	if err != nil {
		return err
	}
	defer unlock()
	if err := prepare(ctx, db, o); err != nil {
		return err
	}
	if err := up(ctx, db, o.Schema); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return finish(ctx, db, o)
}

// migrationLock is an advisory lock of the database ("waybillm"): grants too must not
// be changed by two at once.
const migrationLock = 0x77617962696c6c6d

// lockMigration waits until no other process migrates this database.
func lockMigration(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = conn.ExecContext(ctx, "select pg_advisory_lock($1)", int64(migrationLock))
	}
	if err != nil {
		return nil, fmt.Errorf("migrate: wait for others who migrate: %w", err)
	}
	return func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", int64(migrationLock))
		_ = conn.Close()
	}, nil
}

// prepare refuses what cannot hold a ledger, or would void its roles, and makes the
// schema.
func prepare(ctx context.Context, db *sql.DB, o MigrateOptions) error {
	schema := o.Schema
	var encoding string
	if err := db.QueryRowContext(ctx, "show server_encoding").Scan(&encoding); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if encoding != "UTF8" {
		return domain.ErrEncodingNotSupported.With("the database's encoding is " + encoding + "; create one with ENCODING 'UTF8'")
	}
	var user string
	if err := db.QueryRowContext(ctx, "select current_user").Scan(&user); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if o.ProjectionRole != "" && (o.ProjectionRole == o.AppRole || o.ProjectionRole == o.OutboxRole) {
		return domain.ErrInvalidRequest.With("role " + o.ProjectionRole + " would own the projections, which whoever serves needs not; name another")
	}
	if user == o.AppRole || user == o.OutboxRole {
		return domain.ErrInvalidRequest.With("role " + user + " owns the ledger and could change what must never change; name another for the application")
	}
	if o.AuditorRole != "" && slices.Contains([]string{user, o.AppRole, o.OutboxRole, o.ProjectionRole}, o.AuditorRole) {
		return domain.ErrInvalidRequest.With("role " + o.AuditorRole + " may do more than read what auditors see; name another for them")
	}
	_, err := db.ExecContext(ctx, "create schema if not exists "+string(schema)) // a checked name
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeUnique { // another process was a moment faster
		return nil
	}
	if err != nil {
		return fmt.Errorf("migrate: create schema: %w", err)
	}
	return nil
}

func up(ctx context.Context, db *sql.DB, schema projections.Schema) error {
	steps, err := steps(schema)
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	store, err := database.NewStore(goose.DialectPostgres, string(schema)+".goose_db_version")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider("", db, nil, goose.WithStore(store), goose.WithSessionLocker(locker),
		goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// steps are the embedded files as goose takes them, each in its own transaction and
// in the schema asked for.
func steps(schema projections.Schema) ([]*goose.Migration, error) {
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return nil, err
	}
	var list []*goose.Migration
	for _, name := range files {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return nil, err
		}
		version, err := number(name)
		if err != nil {
			return nil, err
		}
		run := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, schema.SQL(string(text)))
			return err
		}
		list = append(list, goose.NewGoMigration(version, &goose.GoFunc{RunTx: run}, nil))
	}
	return list, nil
}

func number(name string) (int64, error) {
	digits, _, _ := strings.Cut(name, "_")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("migration %s: a name is NNNN_name.sql", name)
	}
	return n, nil
}

// finish makes partitions and grants, which have to be looked after each time.
func finish(ctx context.Context, db *sql.DB, o MigrateOptions) error {
	if _, err := db.ExecContext(ctx, o.Schema.SQL("select waybill.make_partitions($1)"), partitionsAhead); err != nil {
		return fmt.Errorf("migrate: make partitions: %w", err)
	}
	for _, g := range []struct{ role, call string }{
		{o.AppRole, "call waybill.grant_app($1)"}, {o.OutboxRole, "call waybill.grant_outbox($1)"},
		{o.ProjectionRole, "call waybill.grant_projections($1)"}, {o.AuditorRole, "call waybill.grant_auditor($1)"},
	} {
		if g.role == "" {
			continue
		}
		if _, err := db.ExecContext(ctx, o.Schema.SQL(g.call), g.role); err != nil {
			return fmt.Errorf("migrate: grant to %s: %w", g.role, err)
		}
	}
	return nil
}

// CheckSchema refuses a database whose schema is not the one that this program
// knows: not migrated, older, or newer.
func (l *Ledger) CheckSchema(ctx context.Context) error {
	var version int64
	err := l.pool.QueryRow(ctx, l.Schema.SQL(getSchemaVersion)).Scan(&version)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == codeUndefinedTable || pg.Code == codeUndefinedSchema) || errors.Is(err, pgx.ErrNoRows) {
		return domain.ErrSchemaUnknown.With("the schema " + string(l.Schema) + " holds no ledger; run: waybill migrate")
	}
	if err != nil {
		return fmt.Errorf("check the schema: %w", err)
	}
	known, err := latest()
	switch {
	case err != nil:
		return err
	case version < known:
		return domain.ErrSchemaUnknown.With(fmt.Sprintf("the schema is at version %d, this program needs %d; run: waybill migrate", version, known))
	case version > known:
		return domain.ErrSchemaUnknown.With(fmt.Sprintf("the schema is at version %d, this program knows %d; run a newer waybill", version, known))
	}
	return nil
}

func latest() (int64, error) {
	list, err := steps(projections.DefaultSchema)
	if err != nil {
		return 0, err
	}
	return list[len(list)-1].Version, nil
}

// MakePartitions makes the log's coming months where they are missing and returns
// how many it made.
func (l *Ledger) MakePartitions(ctx context.Context) (made int, err error) {
	err = l.pool.QueryRow(ctx, l.Schema.SQL("select waybill.make_partitions($1)"), partitionsAhead).Scan(&made)
	if err != nil {
		return 0, fmt.Errorf("make partitions: %w", err)
	}
	return made, nil
}
