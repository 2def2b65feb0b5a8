package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

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

// changed says in JSON which members differ from those of a plain configuration.
func changed(t *testing.T, c domain.EndpointConfig) string {
	t.Helper()
	was, is, diff := flat(t, plain()), flat(t, c), map[string]json.RawMessage{}
	for name, value := range is {
		if string(value) != string(was[name]) {
			diff[name] = value
		}
	}
	text, err := json.Marshal(diff)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// flat is a configuration's members and those of its policy.
func flat(t *testing.T, c domain.EndpointConfig) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	for _, part := range []any{c.Policy, c} {
		text, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(all, "policy")
	return all
}

const (
	toOther = `{"policy":{"retries":{"base":"1s","factor":2,"cap":"1m0s","attempts":4}}}`
	toList  = `{"policy":{"retries":{"delays":["0s","1s"]}}}`
)

// TestPatchMerges is RFC 7396, member by member, with what it cannot say: retries in
// one form replace the other form, and header names have no case.
func TestPatchMerges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patches []string // one after the other
		want    string   // what differs in the end
	}{
		"nothing":         {[]string{`{}`}, `{}`},
		"a description":   {[]string{`{"description":"e"}`}, `{"description":"e"}`},
		"null texts":      {[]string{`{"description":null,"event_types":null,"mode":null}`}, `{"description":"","event_types":[]}`},
		"no policy":       {[]string{`{"policy":{"timeout":"2s"}}`, `{"policy":null}`}, `{"headers":{}}`},
		"a policy member": {[]string{`{"policy":{"timeout":"2s"}}`}, `{"timeout":"2s"}`},
		"and back":        {[]string{`{"policy":{"timeout":"2s","jitter":0.5}}`, `{"policy":{"timeout":null,"jitter":null}}`}, `{}`},

		"a header more":          {[]string{`{"policy":{"headers":{"X-New":"n"}}}`}, `{"headers":{"X-Api-Key":"k","X-New":"n","X-Other":"o"}}`},
		"a header less":          {[]string{`{"policy":{"headers":{"X-Api-Key":null}}}`}, `{"headers":{"X-Other":"o"}}`},
		"a header in other case": {[]string{`{"policy":{"headers":{"x-api-key":"n"}}}`}, `{"headers":{"X-Other":"o","x-api-key":"n"}}`},
		"less, in other case":    {[]string{`{"policy":{"headers":{"x-api-key":null}}}`}, `{"headers":{"X-Other":"o"}}`},
		"no headers":             {[]string{`{"policy":{"headers":null}}`}, `{"headers":{}}`},

		"delays for delays":    {[]string{toList}, `{"retries":{"delays":["0s","1s"]}}`},
		"the other form":       {[]string{toOther}, `{"retries":{"base":"1s","factor":2,"cap":"1m0s","attempts":4}}`},
		"in part":              {[]string{`{"policy":{"retries":{"attempts":4}}}`}, `{"retries":{"base":"5s","factor":3,"cap":"10h0m0s","attempts":4}}`},
		"a member of it":       {[]string{toOther, `{"policy":{"retries":{"attempts":9}}}`}, `{"retries":{"base":"1s","factor":2,"cap":"1m0s","attempts":9}}`},
		"null in it":           {[]string{toOther, `{"policy":{"retries":{"base":null}}}`}, `{"retries":{"base":"5s","factor":2,"cap":"1m0s","attempts":4}}`},
		"zeros stay":           {[]string{`{"policy":{"retries":{"base":"0s","cap":"0s"}}}`, `{"description":"d"}`}, `{"retries":{"factor":3,"attempts":10}}`},
		"there and back":       {[]string{toOther, toList}, `{"retries":{"delays":["0s","1s"]}}`},
		"null retries":         {[]string{toList, `{"policy":{"retries":null}}`}, `{}`},
		"null delays":          {[]string{toList, `{"policy":{"retries":{"delays":null}}}`}, `{}`},
		"null of another form": {[]string{toList, `{"policy":{"retries":{"base":null}}}`}, `{"retries":{"delays":["0s","1s"]}}`},
		"null for another":     {[]string{toList, `{"policy":{"retries":{"delays":null,"base":"5s"}}}`}, `{"retries":{"base":"5s","factor":3,"cap":"10h0m0s","attempts":10}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := plain()
			for _, patch := range c.patches {
				var err error
				if got, err = merge(got, json.RawMessage(patch)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := changed(t, got); diff != c.want {
				t.Errorf("got  %s\nwant %s", diff, c.want)
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
