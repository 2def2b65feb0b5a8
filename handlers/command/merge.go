package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"waybill/domain"
)

// The members that a caller may give.
var (
	endpointMembers = []string{"url", "description", "mode", "event_types", "policy"}
	policyMembers   = []string{"timeout", "retries", "jitter", "max_in_flight", "rate_per_second", "submit_rate",
		"on_unknown_outcome", "ordering", "headers", "idempotency_header", "ca_pem", "expire_after", "disable_after"}
	exponential    = []string{"base", "factor", "cap", "attempts"}
	retriesMembers = append([]string{"delays"}, exponential...)
)

// defaultExponential is what holds where the exponential form leaves a member out.
var defaultExponential = domain.Retries{
	Base: domain.Duration(5 * time.Second), Factor: 3, Cap: domain.Duration(10 * time.Hour), Attempts: 10,
}

// merge applies a patch (RFC 7396) to a plain configuration.
func merge(plain domain.EndpointConfig, patch json.RawMessage) (domain.EndpointConfig, error) {
	if !utf8.Valid(patch) {
		return plain, domain.ErrInvalidRequest.With("the request is not valid UTF-8")
	}
	given, err := object("", patch, endpointMembers)
	if err != nil {
		return plain, err
	}
	if given == nil {
		return plain, domain.ErrInvalidRequest.With("the request must be a JSON object")
	}
	policy, err := object("policy", given["policy"], policyMembers)
	if err != nil {
		return plain, err
	}
	if err := makeRoom(&plain.Policy, policy); err != nil {
		return plain, err
	}
	doc, err := document(plain)
	if err != nil {
		return plain, err
	}
	merged, err := jsonpatch.MergePatch(doc, patch)
	if err != nil {
		return plain, domain.ErrInvalidRequest
	}
	return decodeConfig(merged)
}

// document is a configuration as JSON to merge into. A member of the exponential form
// that is zero is there too, lest it be taken for one that is left out.
func document(plain domain.EndpointConfig) ([]byte, error) {
	doc, err := json.Marshal(plain)
	r := plain.Policy.Retries
	if err != nil || r.Attempts == 0 {
		return doc, err
	}
	zeros, err := json.Marshal(map[string]any{"policy": map[string]any{"retries": map[string]any{"base": r.Base, "cap": r.Cap}}})
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergePatch(doc, zeros)
}

// makeRoom takes out of a policy what a patch of it replaces rather than joins: the
// other form of retries, and a header whose name is written in other case.
func makeRoom(p *domain.Policy, patch map[string]json.RawMessage) error {
	retries, err := object("policy.retries", patch["retries"], retriesMembers)
	if err != nil {
		return err
	}
	isList := len(p.Retries.Delays) > 0
	if isList && anyGiven(retries, exponential) || !isList && anyGiven(retries, []string{"delays"}) {
		p.Retries = domain.Retries{}
	}
	headers, err := object("policy.headers", patch["headers"], nil)
	if err != nil {
		return err
	}
	p.Headers = maps.Clone(p.Headers)
	for name := range headers {
		maps.DeleteFunc(p.Headers, func(have, _ string) bool { return have != name && strings.EqualFold(have, name) })
	}
	return nil
}

// decodeConfig reads a merged document; what it lacks has its default.
func decodeConfig(doc json.RawMessage) (domain.EndpointConfig, error) {
	var in EndpointInput
	if err := decode("", doc, &in); err != nil {
		return domain.EndpointConfig{}, err
	}
	c := domain.EndpointConfig{URL: in.URL, Description: in.Description, Mode: in.Mode, EventTypes: in.EventTypes}
	if c.Mode == "" {
		c.Mode = domain.ModeHTTP
	}
	if c.EventTypes == nil {
		c.EventTypes = []string{}
	}
	var err error
	c.Policy, err = decodePolicy(in.Policy)
	return c, err
}

func decodePolicy(raw json.RawMessage) (domain.Policy, error) {
	p := domain.DefaultPolicy()
	members, err := object("policy", raw, policyMembers)
	if err != nil || members == nil {
		return p, err
	}
	retries, err := object("policy.retries", members["retries"], retriesMembers)
	if err != nil {
		return p, err
	}
	p.Retries = domain.Retries{}
	if err := decode("policy", raw, &p); err != nil {
		return p, err
	}
	if p.Headers == nil {
		p.Headers = map[string]string{}
	}
	return p, complete(&p.Retries, retries)
}

// complete fills in what a schedule leaves out: all of it, or, of the exponential
// form, its defaults.
func complete(r *domain.Retries, given map[string]json.RawMessage) error {
	if _, ok := given["delays"]; ok && len(r.Delays) == 0 {
		return domain.ErrInvalidRequest.With("policy.retries.delays has at least one entry, the delay before the first attempt")
	}
	if !anyGiven(given, exponential) {
		if len(r.Delays) == 0 {
			*r = domain.DefaultRetries()
		}
		return nil
	}
	d := defaultExponential
	d.Delays = r.Delays
	take(&d.Base, r.Base, given, "base")
	take(&d.Factor, r.Factor, given, "factor")
	take(&d.Cap, r.Cap, given, "cap")
	take(&d.Attempts, r.Attempts, given, "attempts")
	*r = d
	return nil
}

func take[T any](to *T, from T, given map[string]json.RawMessage, name string) {
	if anyGiven(given, []string{name}) {
		*to = from
	}
}

// object reads the members of a JSON object, and refuses names that are not among
// the known ones (nil: any). Null or nothing is nil.
func object(field string, raw json.RawMessage, known []string) (map[string]json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, domain.ErrInvalidRequest.With(cmp.Or(field, "the request") + " must be a JSON object")
	}
	for name := range members {
		if known != nil && !slices.Contains(known, name) {
			return nil, domain.ErrInvalidRequest.With(fmt.Sprintf("%.100q is not a member of %s; there are %s",
				name, cmp.Or(field, "an endpoint"), strings.Join(known, ", ")))
		}
	}
	return members, nil
}

func anyGiven(members map[string]json.RawMessage, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		raw, ok := members[n]
		return ok && string(raw) != "null"
	})
}

// decode reads JSON, and says in the caller's words what is wrong with it.
func decode(field string, raw json.RawMessage, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return domain.ErrInvalidRequest.With(strings.Trim(field+"."+wrong.Field, ".") + " cannot be a JSON " + wrong.Value)
	}
	return domain.ErrInvalidRequest.With(strings.TrimSpace(field + " " + err.Error()))
}
