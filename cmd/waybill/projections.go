package main

import (
	"context"
	"strconv"

	"waybill/adapters/postgres"
	"waybill/handlers/projector"
	"waybill/projections"
)

// lagPatience is how many positions a projection may be behind before that is wrong.
const lagPatience = 100_000

// projector moves the asynchronous projections; every node does, whoever is first.
func (n *node) projector() *projector.Projector {
	return projector.New(projector.Config{Ledger: n.ledger, Log: n.config.Log, Transient: postgres.Transient, Seen: n.metrics.projected})
}

func checkProjections(ctx context.Context, l *postgres.Ledger) ([]finding, error) {
	list, err := l.ListProjections(ctx)
	var all []finding
	for _, p := range list {
		switch {
		case p.State == projections.ProjectionStopped:
			all = append(all, found("projections", false, "%s has stopped at %s: %s; once that is mended: waybill rebuild %s", p.Name, p.At(), p.Error, p.Name))
		case p.State == projections.ProjectionOutdated:
			all = append(all, found("projections", false, "%s holds rows of version %d, which is not this program's; run: waybill rebuild %s", p.Name, p.Version, p.Name))
		case p.Lag > lagPatience:
			all = append(all, found("projections", false, "%s is %d positions behind; does a serve run?", p.Name, p.Lag))
		}
	}
	if len(all) == 0 {
		all = append(all, found("projections", true, "none has stopped or is far behind"))
	}
	return all, err
}

// projectionsCmd looks at what is derived from the log.
type projectionsCmd struct {
	List projectionsListCmd `cmd:"" help:"List projections: version, checkpoint, lag and state."`
}

type projectionsListCmd struct{}

// Run lists them by name.
func (projectionsListCmd) Run(ctx context.Context, in *invocation) error {
	return in.withLedger(ctx, func(s *session) error {
		return listing[projections.ProjectionStatus]{
			heads: []string{"NAME", "KIND", "VERSION", "CHECKPOINT", "LAG", "STATE", "REBUILT", "STOPPED AT", "WHY"},
			row: func(p projections.ProjectionStatus) []string {
				at, rebuilt := "each append", ""
				if p.Position != nil {
					at = strconv.FormatInt(*p.Position, 10)
				}
				if !p.RebuiltAt.IsZero() {
					rebuilt = p.RebuiltAt.String()
				}
				return []string{p.Name, p.Kind, strconv.Itoa(p.Version), at, strconv.FormatInt(p.Lag, 10), string(p.State),
					dash(rebuilt), dash(p.At()), p.Error}
			},
		}.print(in, onePage(s.ListProjections(ctx)))
	})
}
