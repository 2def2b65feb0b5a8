package domain_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"waybill/domain"
)

func config(change func(*domain.EndpointConfig)) domain.EndpointConfig {
	c := domain.EndpointConfig{
		URL: "https://a.example/hook?k=", URLFingerprint: domain.Hex{1}, Description: "first", Mode: domain.ModeHTTP,
		EventTypes: []string{"order.*"}, Policy: domain.DefaultPolicy(),
	}
	if change != nil {
		change(&c)
	}
	return c
}

func endpointOf(events ...domain.Event) domain.Endpoint {
	p := domain.Endpoint{}.Evolve(domain.EndpointCreated{Config: config(nil)}, noon)
	for _, e := range events {
		p = p.Evolve(e, in(time.Second))
	}
	return p
}

func TestEndpointStatuses(t *testing.T) {
	var (
		active   = endpointOf()
		paused   = endpointOf(domain.EndpointPaused{})
		disabled = endpointOf(domain.EndpointDisabled{})
		archived = endpointOf(domain.EndpointArchived{})
		gone     = domain.ErrEndpointArchived
		id       = token(1)
	)
	pause := func(p domain.Endpoint) ([]domain.Event, error) { return p.Pause("jo") }
	resume := func(p domain.Endpoint) ([]domain.Event, error) { return p.Resume("jo") }
	disable := func(p domain.Endpoint) ([]domain.Event, error) { return p.Disable("gone", id) }
	archive := func(p domain.Endpoint) ([]domain.Event, error) { return p.Archive("jo") }
	rotate := func(p domain.Endpoint) ([]domain.Event, error) { return p.RotateSecret(in(time.Hour), "jo") }
	pauses, resumes := now(domain.EndpointPaused{OnBehalfOf: "jo"}), now(domain.EndpointResumed{OnBehalfOf: "jo"})
	disables, archives := now(domain.EndpointDisabled{Why: "gone", DeliveryID: id}), now(domain.EndpointArchived{OnBehalfOf: "jo"})
	rotates := now(domain.SecretRotated{OverlapUntil: in(time.Hour), Why: "requested", OnBehalfOf: "jo"})
	for name, c := range map[string]struct {
		when    func(domain.Endpoint) ([]domain.Event, error)
		given   domain.Endpoint
		then    []domain.Event
		refused error
		status  domain.EndpointStatus
	}{
		"pause active": {pause, active, pauses, nil, "paused"}, "pause paused": {pause, paused, nil, nil, "paused"},
		"pause disabled": {pause, disabled, pauses, nil, "paused"}, "pause archived": {pause, archived, nil, gone, "archived"},
		"resume active": {resume, active, nil, nil, "active"}, "resume paused": {resume, paused, resumes, nil, "active"},
		"resume disabled": {resume, disabled, resumes, nil, "active"}, "resume archived": {resume, archived, nil, gone, "archived"},
		"disable active": {disable, active, disables, nil, "disabled"}, "disable paused": {disable, paused, disables, nil, "disabled"},
		"disable disabled": {disable, disabled, nil, nil, "disabled"}, "disable archived": {disable, archived, nil, nil, "archived"},
		"archive active": {archive, active, archives, nil, "archived"}, "archive paused": {archive, paused, archives, nil, "archived"},
		"archive disabled": {archive, disabled, archives, nil, "archived"}, "archive archived": {archive, archived, nil, nil, "archived"},
		"rotate active": {rotate, active, rotates, nil, "active"}, "rotate paused": {rotate, paused, rotates, nil, "paused"},
		"rotate disabled": {rotate, disabled, rotates, nil, "disabled"}, "rotate archived": {rotate, archived, nil, gone, "archived"},
	} {
		got, err := c.when(c.given)
		if err != c.refused || len(got)+len(c.then) > 0 && !reflect.DeepEqual(got, c.then) {
			t.Errorf("%s: got %+v, %v, want %+v, %v", name, got, err, c.then, c.refused)
		}
		after := c.given
		for _, e := range got {
			after = after.Evolve(e, in(time.Minute))
		}
		if after.Status != c.status || after.Version != c.given.Version+len(got) || !reflect.DeepEqual(after.Config, c.given.Config) {
			t.Errorf("%s: then %+v", name, after)
		}
	}
}

func TestUpdate(t *testing.T) {
	newURL := func(c *domain.EndpointConfig) { c.URL, c.URLFingerprint = "https://b.example/", domain.Hex{2} }
	for name, c := range map[string]struct {
		change  func(*domain.EndpointConfig)
		members []string // that differ
		mint    bool
	}{
		"nothing":               {nil, nil, false},
		"the description":       {func(c *domain.EndpointConfig) { c.Description = "" }, []string{"Description"}, false},
		"the event types":       {func(c *domain.EndpointConfig) { c.EventTypes = []string{"a", "b"} }, []string{"EventTypes"}, false},
		"no event types":        {func(c *domain.EndpointConfig) { c.EventTypes = []string{} }, []string{"EventTypes"}, false},
		"event types left out":  {func(c *domain.EndpointConfig) { c.EventTypes = nil }, []string{"EventTypes"}, false},
		"a header":              {func(c *domain.EndpointConfig) { c.Policy.Headers = map[string]string{"x": "f"} }, []string{"Policy"}, false},
		"headers left out":      {func(c *domain.EndpointConfig) { c.Policy.Headers = nil }, nil, false},
		"the URL":               {newURL, []string{"URL", "URLFingerprint"}, true},
		"a query value":         {func(c *domain.EndpointConfig) { c.URLFingerprint = domain.Hex{2} }, []string{"URLFingerprint"}, true},
		"the URL and a timeout": {func(c *domain.EndpointConfig) { newURL(c); c.Policy.Timeout /= 2 }, []string{"URL", "URLFingerprint", "Policy"}, true},
		"the schedule, and the cap": {func(c *domain.EndpointConfig) {
			c.Policy.Retries = domain.Retries{Delays: []domain.Duration{}, Base: 1, Factor: 2, Cap: 3, Attempts: 4}
		}, []string{"Policy"}, false},
	} {
		t.Run(name, func(t *testing.T) { update(t, config(c.change), c.members, c.mint) })
	}
	if events, mint, err := endpointOf(domain.EndpointArchived{}).Update(config(newURL), "", noon); err != domain.ErrEndpointArchived || mint || events != nil {
		t.Errorf("archived: got %v, %v, %v", events, mint, err)
	}
}

func update(t *testing.T, next domain.EndpointConfig, members []string, mint bool) {
	p := endpointOf()
	events, minted, err := p.Update(next, "jo", in(time.Hour))
	if err != nil || minted != mint || len(members) == 0 && len(events) > 0 {
		t.Fatalf("got %+v, mint %v, %v", events, minted, err)
	}
	if !reflect.DeepEqual(p.Config, config(nil)) {
		t.Error("the decision changed the state")
	}
	if len(members) == 0 {
		return
	}
	updated := events[0].(domain.EndpointUpdated)
	if before, after := named(updated.Before), named(updated.After); !reflect.DeepEqual(before, members) || !reflect.DeepEqual(after, members) || updated.OnBehalfOf != "jo" {
		t.Errorf("before %v, after %v, want %v", before, after, members)
	}
	rotated := domain.SecretRotated{OverlapUntil: in(time.Hour), Why: "url_changed", OnBehalfOf: "jo"}
	if mint && (len(events) != 2 || events[1] != domain.Event(rotated)) || !mint && len(events) != 1 {
		t.Errorf("a new URL, and only that, brings a new secret: %+v", events)
	}
	read := p
	for _, e := range events {
		kept, err := throughJSON(e)
		if err != nil {
			t.Fatal(err)
		}
		p, read = p.Evolve(e, noon), read.Evolve(kept, noon)
	}
	if !reflect.DeepEqual(p, read) {
		t.Errorf("as decided: %+v\nas read from the log: %+v", p, read)
	}
	if again, _, _ := p.Update(next, "jo", in(time.Hour)); again != nil {
		t.Errorf("the same update again: %+v", again)
	}
}

// named lists the members that a change holds.
func named(c domain.EndpointChange) (members []string) {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			members = append(members, v.Type().Field(i).Name)
		}
	}
	return members
}

func TestEndpointTimes(t *testing.T) {
	p := endpointOf(domain.EndpointPaused{})
	if p.CreatedAt != noon || p.UpdatedAt != in(time.Second) || p.Version != 2 {
		t.Errorf("%+v", p)
	}
}

func TestWants(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		typ      string
		want     bool
	}{
		{nil, "order.paid", true}, {[]string{}, "anything", true},
		{[]string{"order.paid"}, "order.paid", true}, {[]string{"order.paid"}, "order.paid.late", false}, {[]string{"order.paid"}, "order.pai", false},
		{[]string{"order.*"}, "order.paid", true}, {[]string{"order.*"}, "order.paid.late", true}, {[]string{"order.*"}, "order", false},
		{[]string{"order.*"}, "orders.paid", false}, {[]string{"order.*"}, "Order.paid", false}, {[]string{"a", "order.*"}, "order.x", true},
		{[]string{"a", "b"}, "c", false}, {[]string{"order.paid.*"}, "order.paid", false},
	} {
		p := endpointOf()
		p.Config.EventTypes = c.patterns
		if p.Wants(c.typ) != c.want {
			t.Errorf("%v wants %q: %v", c.patterns, c.typ, !c.want)
		}
		for status, takes := range map[domain.EndpointStatus]bool{domain.StatusPaused: true, domain.StatusDisabled: true, domain.StatusArchived: false} {
			if p.Status = status; p.Wants(c.typ) != (c.want && takes) {
				t.Errorf("%s, %v wants %q: %v", status, c.patterns, c.typ, !(c.want && takes))
			}
		}
	}
}

func TestEventTypes(t *testing.T) {
	long := string(make255())
	for s, ok := range map[string]bool{
		"a": true, "order.paid": true, "a~!": true, long: true,
		"": false, long + "a": false, "a b": false, "a*": false, "order.*": false, "é": false, "a\n": false, "\x7f": false,
	} {
		if err := domain.CheckEventType(s); (err == nil) != ok || err != nil && !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("type %q: %v", s, err)
		}
	}
	for s, ok := range map[string]bool{
		"a": true, "order.*": true, "order.paid.*": true, long + ".*": true,
		"": false, "*": false, ".*": false, "order*": false, "order.*.paid": false, "a.*.*": false, "a b.*": false,
	} {
		if err := domain.CheckEventTypes([]string{"fine", s}); (err == nil) != ok {
			t.Errorf("pattern %q: %v", s, err)
		}
	}
	many := make([]string, domain.MaxEventTypes)
	for i := range many {
		many[i] = "a"
	}
	if domain.CheckEventTypes(nil) != nil || domain.CheckEventTypes(many) != nil || domain.CheckEventTypes(append(many, "a")) == nil {
		t.Error("an endpoint names none to a hundred event types")
	}
}

func make255() []byte {
	b := make([]byte, 255)
	for i := range b {
		b[i] = 'e'
	}
	return b
}
