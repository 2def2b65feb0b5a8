package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"waybill/adapters/secrets"
	"waybill/projections"
)

//go:embed sql/get_newest_secret.sql
var getNewestSecret string

// How often the log's coming months are looked after, and how soon again after a
// fault.
const (
	partitionsEvery = time.Hour
	partitionsAgain = time.Minute
)

// inspect looks at the database before anything runs on it.
func (n *node) inspect(ctx context.Context) error {
	if err := n.ledger.CheckSchema(ctx); err != nil {
		return err
	}
	if err := checkKeyset(ctx, n.pool, n.ledger.Schema, n.config.Vault); err != nil {
		return err
	}
	return n.warnOfPower(ctx)
}

// checkKeyset refuses a keyset that does not open what the ledger holds: with it no
// delivery could be made, and what it sealed nobody else could open.
func checkKeyset(ctx context.Context, pool *pgxpool.Pool, schema projections.Schema, vault *secrets.Vault) error {
	var id uuid.UUID
	var sealed []byte
	err := pool.QueryRow(ctx, schema.SQL(getNewestSecret)).Scan(&id, &sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("check the keyset: %w", err)
	}
	if _, err := vault.Open(sealed, id[:]); err != nil {
		return fmt.Errorf("the keyset is not the one that this ledger's secrets were sealed with: endpoint %s: %w", id, err)
	}
	return nil
}

// warnOfPower says so when the role could change what must never change: the log is
// append-only for the application's role alone.
func (n *node) warnOfPower(ctx context.Context) error {
	p, err := n.ledger.Power(ctx)
	if err != nil {
		return err
	}
	const remedy = "make a role of its own, run: waybill migrate --app-role ROLE, and connect as that"
	switch {
	case p.Superuser:
		n.config.Log.Warn("CONNECTED AS A SUPERUSER, who can rewrite the log", "role", p.Role, "remedy", remedy)
	case p.Owner:
		n.config.Log.Warn("CONNECTED AS THE OWNER OF THE LOG, who can rewrite it", "role", p.Role, "remedy", remedy)
	}
	return nil
}

// makePartitions makes the log's coming months, at once and then hourly, until ctx
// ends.
func (n *node) makePartitions(ctx context.Context) {
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		made, err := n.ledger.MakePartitions(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.config.Log.Error("the log's coming months could not be made", "error", err)
			pause = partitionsAgain
		default:
			pause = partitionsEvery
		}
		if made > 0 {
			n.config.Log.Info("made partitions of the log", "months", made)
		}
	}
}
