package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

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
