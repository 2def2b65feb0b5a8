package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"waybill/domain"
)

// plain is a configuration as an endpoint of some age has it.
func plain() domain.EndpointConfig {
	p := domain.DefaultPolicy()
	p.Headers = map[string]string{"X-Api-Key": "k", "X-Other": "o"}
	return domain.EndpointConfig{
		URL: "https://example.com/a?token=t", Description: "d", Mode: domain.ModeHTTP, EventTypes: []string{"a.b"}, Policy: p,
	}
}

func exponentially(base string, factor float64, most string, attempts int) domain.Retries {
	r := domain.Retries{Factor: factor, Attempts: attempts}
	_ = r.Base.UnmarshalText([]byte(base))
	_ = r.Cap.UnmarshalText([]byte(most))
	return r
}

// TestPatchMerges is RFC 7396, member by member, with what it cannot say: retries in
// one form replace the other form, and header names have no case.
func TestPatchMerges(t *testing.T) {
	t.Parallel()
	list := domain.Retries{Delays: []domain.Duration{0, domain.Duration(time.Second)}}
	for name, c := range map[string]struct {
		before  domain.Retries // of the policy; zero: default
		patches []string
		want    func(*domain.EndpointConfig)
	}{
		"nothing":                        {patches: []string{`{}`}},
		"a description":                  {patches: []string{`{"description":"e"}`}, want: func(c *domain.EndpointConfig) { c.Description = "e" }},
		"null is back to the default":    {patches: []string{`{"description":null,"event_types":null,"mode":null}`}, want: func(c *domain.EndpointConfig) { c.Description, c.EventTypes = "", []string{} }},
		"no policy":                      {patches: []string{`{"policy":null}`}, want: func(c *domain.EndpointConfig) { c.Policy = domain.DefaultPolicy() }},
		"one member of the policy":       {patches: []string{`{"policy":{"timeout":"2s"}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Timeout = domain.Duration(2 * time.Second) }},
		"and back":                       {patches: []string{`{"policy":{"timeout":"2s","jitter":0.5}}`, `{"policy":{"timeout":null,"jitter":null}}`}},
		"a header more":                  {patches: []string{`{"policy":{"headers":{"X-New":"n"}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Headers["X-New"] = "n" }},
		"a header less":                  {patches: []string{`{"policy":{"headers":{"X-Api-Key":null}}}`}, want: func(c *domain.EndpointConfig) { delete(c.Policy.Headers, "X-Api-Key") }},
		"a header in other case":         {patches: []string{`{"policy":{"headers":{"x-api-key":"n"}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Headers = map[string]string{"x-api-key": "n", "X-Other": "o"} }},
		"a header less, in other case":   {patches: []string{`{"policy":{"headers":{"x-api-key":null}}}`}, want: func(c *domain.EndpointConfig) { delete(c.Policy.Headers, "X-Api-Key") }},
		"no headers":                     {patches: []string{`{"policy":{"headers":null}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Headers = map[string]string{} }},
		"delays for delays":              {patches: []string{`{"policy":{"retries":{"delays":["0s","1s"]}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = list }},
		"the other form":                 {patches: []string{`{"policy":{"retries":{"base":"1s","factor":2,"cap":"1m","attempts":4}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = exponentially("1s", 2, "1m", 4) }},
		"the other form, in part":        {patches: []string{`{"policy":{"retries":{"attempts":4}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = exponentially("5s", 3, "10h", 4) }},
		"a member of the other form":     {before: exponentially("1s", 2, "1m", 4), patches: []string{`{"policy":{"retries":{"attempts":9}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = exponentially("1s", 2, "1m", 9) }},
		"null in the other form":         {before: exponentially("1s", 2, "1m", 4), patches: []string{`{"policy":{"retries":{"base":null}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = exponentially("5s", 2, "1m", 4) }},
		"a zero base stays":              {before: exponentially("0s", 2, "0s", 4), patches: []string{`{"description":"d"}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = exponentially("0s", 2, "0s", 4) }},
		"back to delays":                 {before: exponentially("1s", 2, "1m", 4), patches: []string{`{"policy":{"retries":{"delays":["0s","1s"]}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = list }},
		"there and back":                 {patches: []string{`{"policy":{"retries":{"attempts":4}}}`, `{"policy":{"retries":{"delays":["0s","1s"]}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = list }},
		"null retries":                   {before: list, patches: []string{`{"policy":{"retries":null}}`}},
		"null delays":                    {before: list, patches: []string{`{"policy":{"retries":{"delays":null}}}`}},
		"null where there is another":    {before: list, patches: []string{`{"policy":{"retries":{"base":null}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = list }},
		"null of one form for the other": {patches: []string{`{"policy":{"retries":{"delays":null,"attempts":4}}}`}, want: func(c *domain.EndpointConfig) { c.Policy.Retries = exponentially("5s", 3, "10h", 4) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := plain(), plain()
			if c.before.Max() > 0 {
				got.Policy.Retries = c.before
			}
			if c.want != nil {
				c.want(&want)
			}
			for _, patch := range c.patches {
				var err error
				if got, err = merge(got, json.RawMessage(patch)); err != nil {
					t.Fatal(err)
				}
			}
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			if string(g) != string(w) {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
	}
}

// TestPatchIsRefused: what has no effect is not taken, and no value is repeated.
func TestPatchIsRefused(t *testing.T) {
	t.Parallel()
	for patch, says := range map[string]string{
		`null`:                                     "JSON object",
		`[]`:                                       "JSON object",
		`{"secret":"whsec_x"}`:                     `"secret" is not a member`,
		`{"URL":"https://example.com"}`:            `"URL" is not a member`,
		`{"policy":[]}`:                            "policy must be",
		`{"policy":{"Timeout":"1s"}}`:              `"Timeout" is not a member of policy`,
		`{"policy":{"unknown":null}}`:              `"unknown" is not a member of policy`,
		`{"policy":{"retries":{"delay":[]}}}`:      `"delay" is not a member of policy.retries`,
		`{"policy":{"retries":{"delays":[]}}}`:     "at least one",
		`{"policy":{"timeout":"soon"}}`:            "not a duration",
		`{"policy":{"timeout":5}}`:                 "policy.timeout cannot be a JSON number",
		`{"policy":{"headers":{"X-A":5}}}`:         "cannot be a JSON number",
		`{"policy":{"max_in_flight":1.5}}`:         "policy.max_in_flight cannot",
		"{\"description\":\"\xff\"}":               "UTF-8",
		`{"event_types":{}}`:                       "event_types cannot be a JSON object",
		`{"policy":{"headers":"X-Api-Key: s3cr"}}`: "policy.headers must be",
	} {
		_, err := merge(plain(), json.RawMessage(patch))
		if !errors.Is(err, domain.ErrInvalidRequest) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%s: %v", patch, err)
		}
	}
}

func TestMixedRetriesAreRefused(t *testing.T) {
	t.Parallel()
	got, err := merge(plain(), json.RawMessage(`{"policy":{"retries":{"delays":["1s"],"attempts":4}}}`))
	if err == nil {
		err = got.Policy.Check()
	}
	if !errors.Is(err, domain.ErrInvalidRequest) {
		t.Error(err)
	}
}
