package main

import (
	"context"
	"strconv"

	"waybill/projections"
)

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
