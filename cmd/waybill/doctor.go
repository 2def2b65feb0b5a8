package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill/adapters/postgres"
	"waybill/domain"
)

// doctorCmd looks for what is wrong or about to be.
type doctorCmd struct{}

// outboxPatience is how long a row may wait in the outbox: a running node moves it
// within a second.
const outboxPatience = time.Minute

// finding is what one check says.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Says  string `json:"says"`
}

func found(check string, ok bool, format string, args ...any) finding {
	return finding{check, ok, fmt.Sprintf(format, args...)}
}

// examination is one thing that doctor looks at.
type examination func(context.Context, *postgres.Ledger) ([]finding, error)

// Run prints every finding and fails if one of them is bad. On a schema that it does
// not know it looks no further.
func (doctorCmd) Run(ctx context.Context, in *invocation) error {
	pool, err := in.connect(ctx, sessionConns, "waybill-doctor")
	if err != nil {
		return err
	}
	defer pool.Close()
	ledger := postgres.Open(pool, ledgerConfig(in.globals, nil))
	all, err := checkSchema(ctx, ledger)
	for _, c := range []examination{checkRole, checkMonths, checkClaimsOverdue, checkOutbox, checkProjections, checkArchives, checkHorizon} {
		if err != nil || !all[0].OK {
			break
		}
		var more []finding
		more, err = c(ctx, ledger)
		all = append(all, more...)
	}
	if err != nil {
		return err
	}
	return diagnose(in, all)
}

func diagnose(in *invocation, all []finding) error {
	bad := 0
	for _, f := range all {
		if !f.OK {
			bad++
		}
	}
	err := listing[finding]{
		heads: []string{"CHECK", "", "WHAT"},
		row: func(f finding) []string {
			return []string{f.Check, map[bool]string{true: "ok", false: "WRONG"}[f.OK], f.Says}
		},
	}.print(in, onePage(all, nil))
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d checks found something wrong", bad, len(all))
	}
	return err
}

func checkSchema(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	err := l.CheckSchema(ctx)
	var refused *domain.Error
	if errors.As(err, &refused) {
		return []finding{found("schema", false, "%s", refused.Message)}, nil
	}
	return []finding{found("schema", true, "%s is the one that this program knows", l.Schema)}, err
}

func checkRole(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	p, err := l.Power(ctx)
	f := found("role", false, "%s", p.Role)
	switch {
	case p.Superuser:
		f.Says += " is a superuser, who can rewrite the log"
	case p.Owner:
		f.Says += " owns the log and can rewrite it"
	case p.Change:
		f.Says += " may update, delete or truncate the log or a partition of it; only the triggers stop it"
	default:
		f.OK = true
		f.Says += " can only add to the log"
	}
	return []finding{f}, err
}

func checkMonths(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	n, err := l.MonthsAhead(ctx)
	if n < 0 {
		return []finding{found("partitions", false, "the log has none for this month; run: waybill migrate")}, err
	}
	if n == 0 {
		return []finding{found("partitions", false, "the log has none for the next month; a serve makes them hourly, and so does: waybill migrate")}, err
	}
	return []finding{found("partitions", true, "made for %d months beyond this one", n)}, err
}

// checkArchives finds months whose archiving was begun and not ended: nothing is lost, but
// they are neither here nor there.
func checkArchives(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	list, err := l.Archives(ctx)
	all := []finding{found("archives", true, "%d months, none half-way", len(list))}
	for _, a := range list {
		if !a.Done() {
			all[0] = found("archives", false, "%s is %s since %s and no further; run: waybill archive again", a.Month, a.Stage, a.BeganAt)
		}
	}
	return all, err
}

func checkClaimsOverdue(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	n, age, err := l.OverdueClaims(ctx)
	if n == 0 {
		return []finding{found("claims", true, "none ran out more than a minute ago")}, err
	}
	return []finding{found("claims", false, "%d ran out and nobody ended them, the oldest %s ago; does a serve with a worker run?", n, age)}, err
}

func checkOutbox(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	groups, err := l.OutboxHealth(ctx)
	var all []finding
	for _, g := range groups {
		if g.Code == "" {
			all = append(all, found("outbox", g.Age < outboxPatience, "%d rows wait, the oldest (id %d) for %s", g.Rows, g.Oldest, g.Age))
			continue
		}
		all = append(all, found("outbox", false, "%d rows refused as %s, the oldest has id %d", g.Rows, g.Code, g.Oldest))
	}
	if len(all) == 0 {
		all = append(all, found("outbox", true, "empty"))
	}
	return all, err
}
