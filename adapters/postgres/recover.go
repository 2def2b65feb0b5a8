package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"waybill/domain"
	"waybill/projections"
)

var (
	//go:embed sql/lock_expired_claims.sql
	lockExpiredClaims string
	//go:embed sql/select_processing.sql
	selectProcessing string
	//go:embed sql/adopt_orphans.sql
	adoptOrphans string
	//go:embed sql/select_gone.sql
	selectGone string
)

// recovery is the part of the product that ends run-out claims.
var recovery = domain.SystemActor("recovery")

// recoverClaims is how many run-out claims one transaction ends.
const recoverClaims = 20

type expiredClaim struct {
	token uuid.UUID
	ids   []uuid.UUID
}

// Recover ends claims whose lease has run out: each of their deliveries that still
// is processing under the token is in doubt, and its endpoint's policy says what
// follows. Returns how many claims it ended and their deliveries as they are after; no
// claims means that there is nothing more to recover now. Where one delivery makes that
// fail the others are recovered all the same, and the error names it.
func (l *Ledger) Recover(ctx context.Context) (claims int, ended []projections.Delivery, err error) {
	claims, ended, err = l.recover(ctx, recoverClaims)
	if err == nil || !Isolable(err) {
		return claims, ended, err
	}
	var faults []error
	for range recoverClaims {
		n, list, oneErr := l.recoverOne(ctx)
		claims, ended = claims+n, append(ended, list...)
		if oneErr != nil {
			faults = append(faults, oneErr)
		} else if n == 0 {
			break
		}
	}
	return claims, ended, errors.Join(faults...)
}

func (l *Ledger) recover(ctx context.Context, most int) (claims int, ended []projections.Delivery, err error) {
	err = l.transact(ctx, func(tx pgx.Tx) error {
		list, now, err := l.lockExpired(ctx, tx, most)
		if err != nil {
			return err
		}
		claims, ended = len(list), nil
		for _, c := range list {
			after, err := l.expire(ctx, tx, c, now)
			if err != nil {
				return err
			}
			if err := l.endClaim(ctx, tx, c.token); err != nil {
				return err
			}
			ended = append(ended, after...)
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("recover: %w", refusal(err))
	}
	return claims, ended, nil
}

// recoverOne ends one claim and, where that fails, each of its deliveries by itself. A
// claim that a delivery stays under is set aside.
func (l *Ledger) recoverOne(ctx context.Context) (claims int, ended []projections.Delivery, err error) {
	claims, ended, err = l.recover(ctx, 1)
	if err == nil || !Isolable(err) {
		return claims, ended, err
	}
	var c expiredClaim
	var faults []error
	err = l.transact(ctx, func(tx pgx.Tx) error {
		list, _, err := l.lockExpired(ctx, tx, 1)
		if err == nil && len(list) == 1 {
			c = list[0]
		}
		return err
	})
	for _, id := range c.ids {
		err = errors.Join(err, l.transact(ctx, func(tx pgx.Tx) error {
			list, now, err := l.lockExpired(ctx, tx, 1)
			if err != nil || len(list) != 1 || list[0].token != c.token {
				return err // extended meanwhile, or another process has it
			}
			after, err := l.expire(ctx, tx, expiredClaim{c.token, []uuid.UUID{id}}, now)
			if err != nil {
				faults = append(faults, fmt.Errorf("recover delivery %s: %w", id, refusal(err)))
				return err
			}
			ended = append(ended, after...)
			return nil
		}))
	}
	if c.token != uuid.Nil {
		_ = l.aside.put(c.token, err)
	}
	return 0, ended, errors.Join(faults...)
}

func (l *Ledger) lockExpired(ctx context.Context, tx pgx.Tx, most int) (claims []expiredClaim, now time.Time, err error) {
	rows, err := tx.Query(ctx, l.Schema.SQL(lockExpiredClaims), args{"limit": most, "skip": uuids(l.aside.list())})
	if err != nil {
		return nil, now, err
	}
	claims, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c expiredClaim, err error) {
		return c, row.Scan(&c.token, &c.ids, &now)
	})
	return claims, now, err
}

// expire ends one claim. Its rows are locked before they are decided on: a claim
// whose row goes leaves none behind.
func (l *Ledger) expire(ctx context.Context, tx pgx.Tx, c expiredClaim, now time.Time) ([]projections.Delivery, error) {
	rows, err := tx.Query(ctx, l.Schema.SQL(selectProcessing), args{"ids": c.ids, "token": c.token})
	if err != nil {
		return nil, err
	}
	var changes []projections.DeliveryChange
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		d, policy, err := scanWithPolicy(row)
		if err != nil {
			return struct{}{}, err
		}
		facts, err := d.Expire(c.token, domain.Retry{Policy: policy, From: domain.At(now), Random: rand.Float64()})
		if err != nil {
			return struct{}{}, err
		}
		change, err := d.Advance(recovery, domain.At(now), facts...)
		changes = append(changes, change)
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	stale, err := l.appendIn(ctx, tx, changes)
	if err != nil || len(stale) > 0 {
		return nil, errors.Join(err, staleUnderLock(stale))
	}
	return after(changes), nil
}

func (l *Ledger) endClaim(ctx context.Context, tx pgx.Tx, token uuid.UUID) error {
	_, err := tx.Exec(ctx, l.Schema.SQL(deleteClaims), args{"tokens": uuids([]uuid.UUID{token})})
	return err
}

func scanWithPolicy(row pgx.CollectableRow) (d projections.Delivery, p domain.Policy, err error) {
	var policy []byte
	targets, finish := projections.DeliveryTargets(&d)
	if err = row.Scan(append(targets, &policy)...); err != nil {
		return d, p, err
	}
	finish()
	return d, p, json.Unmarshal(policy, &p)
}

// AdoptOrphans makes recovery see deliveries that are processing under a token that
// no claim has, as after a restore. It reads the whole table.
func (l *Ledger) AdoptOrphans(ctx context.Context) (claims int, err error) {
	tag, err := l.pool.Exec(ctx, l.Schema.SQL(adoptOrphans))
	if err != nil {
		return 0, fmt.Errorf("adopt orphans: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// endGoneBatch is how many waiting deliveries of archived endpoints end at a time.
const endGoneBatch = 500

// EndGone gives up deliveries that wait at archived endpoints, and returns how many;
// none means that there is nothing more to end now. One that makes that fail is named
// in the error and set aside.
func (l *Ledger) EndGone(ctx context.Context) (int, error) {
	now, err := l.clock.Now(ctx)
	if err != nil {
		return 0, err
	}
	changes, err := l.gone(ctx, now)
	if err != nil {
		return 0, fmt.Errorf("end what waits at archived endpoints: %w", err)
	}
	stale, err := l.Append(ctx, changes)
	if err == nil || !Isolable(err) {
		return len(changes) - len(stale), err
	}
	ended, faults := 0, []error(nil)
	for _, c := range changes {
		if _, err := l.Append(ctx, []projections.DeliveryChange{c}); err != nil {
			faults = append(faults, l.aside.put(c.After.ID, err))
			continue
		}
		ended++
	}
	return ended, errors.Join(faults...)
}

// gone decides the end of what waits at archived endpoints.
func (l *Ledger) gone(ctx context.Context, now domain.Instant) ([]projections.DeliveryChange, error) {
	rows, err := l.pool.Query(ctx, l.Schema.SQL(selectGone), args{"limit": endGoneBatch, "skip": uuids(l.aside.list())})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c projections.DeliveryChange, err error) {
		var d projections.Delivery
		targets, finish := projections.DeliveryTargets(&d)
		if err := row.Scan(targets...); err != nil {
			return c, err
		}
		finish()
		facts, err := d.TakeClaim(domain.ClaimOrder{}, domain.StatusArchived, domain.Policy{}, now)
		if err != nil {
			return c, err
		}
		return d.Advance(recovery, now, facts...)
	})
}

// staleUnderLock is a fault that cannot happen: what is locked does not move.
func staleUnderLock(stale []uuid.UUID) error {
	if len(stale) == 0 {
		return nil
	}
	return fmt.Errorf("deliveries %v moved although they were locked", stale)
}

func after(changes []projections.DeliveryChange) []projections.Delivery {
	list := make([]projections.Delivery, len(changes))
	for i, c := range changes {
		list[i] = c.After
	}
	return list
}
