package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/google/uuid"
)

var (
	//go:embed sql/claim_exists.sql
	claimExists string
	//go:embed sql/message_exists.sql
	messageExists string
)

// unsurePatience is how long the database is asked whether a write happened after
// its answer was lost.
const unsurePatience = 3 * time.Second

// settle finds out whether a transaction whose answer was lost has happened, by a row
// that it would have written, and forgives the error if so. Where the database does
// not answer either, the error stays.
func (l *Ledger) settle(ctx context.Context, err error, exists string, id uuid.UUID) error {
	if !Unsure(err) || id == uuid.Nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsurePatience)
	defer cancel()
	for ctx.Err() == nil {
		var happened bool
		asked := l.pool.QueryRow(ctx, l.Schema.SQL(exists), args{"id": id}).Scan(&happened)
		if asked == nil && happened {
			return nil
		}
		if asked == nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
