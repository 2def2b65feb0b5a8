package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/domain"
	"waybill/projections"
)

// Limits of what a connection of the product may do, so that nothing of ours holds
// a lock or the horizon for long.
const (
	statementTimeout = 30 * time.Second
	idleInTxTimeout  = 15 * time.Second
	lockTimeout      = 5 * time.Second
)

// ConnectOptions is how a pool is opened.
type ConnectOptions struct {
	MaxConns int32  // at most this many connections; 0: as the URL or pgx says
	Name     string // application_name; empty: waybill
	Role     string // what the connections act as, if not as who they log in as
	Patient  bool   // for long work of an operator: statements and transactions have no time limits
}

// Connect opens a pool whose connections all have time limits, speak UTC and plan
// for the arguments at hand (a plan cached while tables are empty costs tenfold
// until statistics arrive).
func Connect(ctx context.Context, databaseURL string, o ConnectOptions) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, unreadable(err)
	}
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	p := cfg.ConnConfig.RuntimeParams
	p["statement_timeout"] = millis(statementTimeout)
	p["idle_in_transaction_session_timeout"] = millis(idleInTxTimeout)
	p["lock_timeout"] = millis(lockTimeout)
	if o.Patient { // a server notices all the same when its client is gone
		p["statement_timeout"], p["idle_in_transaction_session_timeout"], p["client_connection_check_interval"] = "0", "0", "1000"
	}
	p["plan_cache_mode"] = "force_custom_plan"
	p["timezone"] = "UTC"
	if p["application_name"] = o.Name; o.Name == "" {
		p["application_name"] = "waybill"
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	cfg.ConnConfig.OnPgError = closes(cfg.ConnConfig.OnPgError)
	if o.Role != "" {
		cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "set role "+pgx.Identifier{o.Role}.Sanitize())
			return err
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// closes also ends a connection that turns out to be read-only: after a failover the
// server that it leads to is the primary no more, and a new one may lead elsewhere.
func closes(otherwise pgconn.PgErrorHandler) pgconn.PgErrorHandler {
	return func(c *pgconn.PgConn, err *pgconn.PgError) bool {
		return err.Code != codeReadOnly && (otherwise == nil || otherwise(c, err))
	}
}

func millis(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// unreadable turns what pgx says of a database URL into a refusal that quotes no
// password: where the text does not even parse as a URL nobody can tell where its
// password ends.
func unreadable(err error) error {
	const hint = "the database URL cannot be read"
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		u, urlErr := url.Parse(parse.ConnString)
		if cause := errors.Unwrap(err); urlErr == nil && u.Scheme != "" && u.Host != "" && cause != nil {
			return domain.ErrInvalidRequest.With(hint + ": " + cause.Error())
		}
	}
	return domain.ErrInvalidRequest.With(hint + "; write postgres://USER@HOST:PORT/DATABASE, special characters in a password percent-encoded")
}

// Vault seals what must not lie in the database in the clear. The context is bound
// to the sealed bytes: they open under the same one only.
type Vault interface {
	Seal(plain, context []byte) ([]byte, error)
	Open(sealed, context []byte) ([]byte, error)
}

// Config is what a Ledger works with.
type Config struct {
	Schema projections.Schema // empty: waybill
	Vault  Vault
}

// Ledger writes and reads one ledger. It is safe for concurrent use.
type Ledger struct {
	projections.Reader
	pool   *pgxpool.Pool
	vault  Vault
	clock  *Clock
	routes *routes
	aside  *aside
}

// Open returns the ledger that lives in the pool's database. It does not connect.
func Open(pool *pgxpool.Pool, c Config) *Ledger {
	if c.Schema == "" {
		c.Schema = projections.DefaultSchema
	}
	return &Ledger{
		Reader: projections.Reader{DB: pool, Schema: c.Schema},
		pool:   pool, vault: c.Vault, clock: NewClock(pool), routes: newRoutes(), aside: newAside(),
	}
}

// Clock returns the ledger's estimate of the database's clock.
func (l *Ledger) Clock() *Clock { return l.clock }

// Verify verifies everything; see [projections.Verification].
func (l *Ledger) Verify(ctx context.Context) (projections.Report, error) {
	return projections.Verification{Schema: l.Schema, Snapshot: l.Snapshot}.Run(ctx)
}

// Snapshot runs something in a read-only transaction of its own, which sees one state of
// the database, however long it takes.
func (l *Ledger) Snapshot(ctx context.Context, do func(projections.DB) error) error {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly,
		BeginQuery: "begin isolation level repeatable read read only; set local statement_timeout = 0; set local work_mem = '16MB'"}
	return pgx.BeginTxFunc(ctx, l.pool, snapshot, func(tx pgx.Tx) error { return do(tx) })
}

// Ping says whether the database answers.
func (l *Ledger) Ping(ctx context.Context) error { return l.pool.Ping(ctx) }
