package domain_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"waybill/domain"
)

func TestPolicyCheck(t *testing.T) {
	ms, h := domain.Duration(time.Millisecond), domain.Duration(time.Hour)
	invalid, unsupported := domain.ErrInvalidRequest, domain.ErrUnsupportedPolicy
	for name, c := range map[string]struct {
		change func(*domain.Policy)
		want   error
	}{
		"the default":              {func(*domain.Policy) {}, nil},
		"the least timeout":        {func(p *domain.Policy) { p.Timeout = 100 * ms }, nil},
		"less than that":           {func(p *domain.Policy) { p.Timeout = 100*ms - 1 }, invalid},
		"the most timeout":         {func(p *domain.Policy) { p.Timeout = 30_000 * ms }, nil},
		"more than that":           {func(p *domain.Policy) { p.Timeout = 30_000*ms + 1 }, invalid},
		"no timeout":               {func(p *domain.Policy) { p.Timeout = 0 }, invalid},
		"no jitter":                {func(p *domain.Policy) { p.Jitter = 0 }, nil},
		"jitter of all":            {func(p *domain.Policy) { p.Jitter = 1 }, nil},
		"jitter of more":           {func(p *domain.Policy) { p.Jitter = math.Nextafter(1, 2) }, invalid},
		"negative jitter":          {func(p *domain.Policy) { p.Jitter = -0.1 }, invalid},
		"jitter that is none":      {func(p *domain.Policy) { p.Jitter = math.NaN() }, invalid},
		"one in flight":            {func(p *domain.Policy) { p.MaxInFlight = ref(1) }, nil},
		"none in flight":           {func(p *domain.Policy) { p.MaxInFlight = ref(0) }, invalid},
		"many in flight":           {func(p *domain.Policy) { p.MaxInFlight = ref(100_000) }, nil},
		"too many in flight":       {func(p *domain.Policy) { p.MaxInFlight = ref(100_001) }, invalid},
		"hold":                     {func(p *domain.Policy) { p.OnUnknown = domain.HoldUnknown }, nil},
		"another answer":           {func(p *domain.Policy) { p.OnUnknown = "ignore" }, invalid},
		"no answer":                {func(p *domain.Policy) { p.OnUnknown = "" }, invalid},
		"the idempotency header":   {func(p *domain.Policy) { p.IdempotencyHeader = ref("Idempotency-Key") }, nil},
		"another header":           {func(p *domain.Policy) { p.IdempotencyHeader = ref("X-Key") }, invalid},
		"an ordering":              {func(p *domain.Policy) { p.Ordering = "block" }, unsupported},
		"no ordering at all":       {func(p *domain.Policy) { p.Ordering = "" }, unsupported},
		"a rate":                   {func(p *domain.Policy) { p.RatePerSecond = ref(1.0) }, unsupported},
		"a submit rate":            {func(p *domain.Policy) { p.SubmitRate = &domain.Rate{Count: 1, Per: time.Second} }, nil},
		"a submit rate of nothing": {func(p *domain.Policy) { p.SubmitRate = &domain.Rate{} }, invalid},
		"no certificate":           {func(p *domain.Policy) { p.CA = ref("rubbish") }, invalid},
		"an empty certificate":     {func(p *domain.Policy) { p.CA = ref("") }, invalid},
		"a key for a CA":           {func(p *domain.Policy) { p.CA = ref("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n") }, invalid},
		"expiry":                   {func(p *domain.Policy) { p.ExpireAfter = ref(h) }, unsupported},
		"disabling":                {func(p *domain.Policy) { p.DisableAfter = ref(h) }, unsupported},
	} {
		p := domain.DefaultPolicy()
		c.change(&p)
		if err := p.Check(); !errors.Is(err, c.want) || (err != nil) != (c.want != nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestRetriesCheck(t *testing.T) {
	s := domain.Duration(time.Second)
	month := domain.Duration(domain.MaxRetryDelay)
	ok := domain.Retries{Base: s, Factor: 2, Cap: month, Attempts: 100}
	with := func(change func(*domain.Retries)) domain.Retries {
		r := ok
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		r    domain.Retries
		want bool
	}{
		"exponential":        {ok, true},
		"one attempt":        {with(func(r *domain.Retries) { r.Attempts = 1 }), true},
		"no attempts":        {with(func(r *domain.Retries) { r.Attempts = 0 }), false},
		"too many attempts":  {with(func(r *domain.Retries) { r.Attempts = 101 }), false},
		"no base":            {with(func(r *domain.Retries) { r.Base = 0 }), true},
		"negative base":      {with(func(r *domain.Retries) { r.Base = -s }), false},
		"cap below base":     {with(func(r *domain.Retries) { r.Cap = s - 1 }), false},
		"cap equal to base":  {with(func(r *domain.Retries) { r.Cap = s }), true},
		"cap beyond a month": {with(func(r *domain.Retries) { r.Cap = month + 1 }), false},
		"steepest":           {with(func(r *domain.Retries) { r.Factor = 100 }), true},
		"too steep":          {with(func(r *domain.Retries) { r.Factor = 100.1 }), false},
		"shrinking":          {with(func(r *domain.Retries) { r.Factor = 0.9 }), false},
		"no number":          {with(func(r *domain.Retries) { r.Factor = math.NaN() }), false},
		"infinite":           {with(func(r *domain.Retries) { r.Factor = math.Inf(1) }), false},
		"nothing":            {domain.Retries{}, false},
		"an empty list":      {domain.Retries{Delays: []domain.Duration{}}, false},
		"one delay":          {domain.Retries{Delays: []domain.Duration{0}}, true},
		"a month":            {domain.Retries{Delays: []domain.Duration{month}}, true},
		"more than a month":  {domain.Retries{Delays: []domain.Duration{0, month + 1}}, false},
		"a negative delay":   {domain.Retries{Delays: []domain.Duration{0, -1}}, false},
		"a hundred":          {domain.Retries{Delays: make([]domain.Duration, 100)}, true},
		"a hundred and one":  {domain.Retries{Delays: make([]domain.Duration, 101)}, false},
		"both":               {with(func(r *domain.Retries) { r.Delays = []domain.Duration{s} }), false},
		"list and a factor":  {domain.Retries{Delays: []domain.Duration{s}, Factor: 2}, false},
		"list and attempts":  {domain.Retries{Delays: []domain.Duration{s}, Attempts: 1}, false},
		"list and a cap":     {domain.Retries{Delays: []domain.Duration{s}, Cap: s}, false},
		"list and a base":    {domain.Retries{Delays: []domain.Duration{s}, Base: s}, false},
	} {
		p := domain.DefaultPolicy()
		p.Retries = c.r
		if err := p.Check(); (err == nil) != c.want || err != nil && !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%s: got %v, permitted %v", name, err, c.want)
		}
	}
}

func TestPolicyJSON(t *testing.T) {
	b, err := json.Marshal(domain.DefaultPolicy())
	want := `{"timeout":"15s","retries":{"delays":["0s","5s","5m0s","30m0s","2h0m0s","5h0m0s","10h0m0s","14h0m0s","20h0m0s","24h0m0s"]},` +
		`"jitter":0.1,"max_in_flight":null,"rate_per_second":null,"submit_rate":null,"on_unknown_outcome":"retry","ordering":"none",` +
		`"headers":{},"idempotency_header":null,"ca_pem":null,"expire_after":null,"disable_after":null}`
	if err != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
	var again domain.Policy
	if err := json.Unmarshal(b, &again); err != nil || !reflect.DeepEqual(again, domain.DefaultPolicy()) {
		t.Errorf("read again: %+v, %v", again, err)
	}
}

func ref[T any](v T) *T { return &v }
