package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"waybill/domain"
	"waybill/projections"
)

// tellBudgets says in the answer's headers what a submission was counted against
// (draft-ietf-httpapi-ratelimit-headers): the limit, what remains, and the seconds
// until the window ends; where a budget was spent, also when to try again.
func tellBudgets(h http.Header, budgets []projections.Budget, err error) {
	for _, b := range budgets {
		reset := seconds(b.Reset)
		h.Add("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=%d`, b.Name, b.Rate.Count, seconds(b.Rate.Per)))
		h.Add("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, b.Name, b.Remaining, reset))
		if b.Granted == 0 && errors.Is(err, domain.ErrRateLimited) {
			h.Set("Retry-After", fmt.Sprint(max(1, reset)))
		}
	}
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// budgetHeaders describes what tellBudgets says.
func budgetHeaders(more ...string) map[string]*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	headers := map[string]*huma.Param{
		"RateLimit-Policy": {Schema: text, Description: `one a budget, "key" or "endpoint", where there is a rate: q is the limit, w the window in seconds`},
		"RateLimit":        {Schema: text, Description: "likewise: r is what remains, t the seconds until the window ends"},
	}
	for _, name := range more {
		headers[name] = retryAfter()
	}
	return headers
}

func retryAfter() *huma.Param {
	return &huma.Param{Schema: &huma.Schema{Type: huma.TypeInteger}, Description: "seconds"}
}
