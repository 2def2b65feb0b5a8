package main

import (
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"waybill/adapters/webhook"
	"waybill/domain"
	"waybill/projections"
)

// limit is how many rows a list shows.
type limit struct {
	Limit int `default:"50" placeholder:"N" help:"At most this many (default ${default}); 0 is all."`
}

// Validate refuses a negative limit.
func (l limit) Validate() error {
	if l.Limit < 0 {
		return usageError("--limit is 0 or more")
	}
	return nil
}

// networks are exempt from the address rules.
type networks struct {
	AllowNetworks []netip.Prefix `placeholder:"CIDR" help:"Networks that endpoints may be in although they are private; plain http is allowed there."`
}

type endpointArg struct {
	ID identity `arg:"" help:"The endpoint's id."`
}

type ifVersion struct {
	IfVersion int `placeholder:"N" help:"Only if the endpoint is at this version."`
}

// endpointFlags are what an endpoint is described by, beside its URL.
type endpointFlags struct {
	Description *string  `placeholder:"D" help:"Words for people."`
	EventType   []string `placeholder:"T" help:"Fan out messages of these event types only, exact or prefix.*; give several, or separate them by commas."`
	Policy      string   `placeholder:"JSON" xor:"policy" help:"Members of the policy, such as {\"timeout\":\"5s\"}; what is left out stays, or has its default."`
	PolicyFile  string   `placeholder:"F" xor:"policy" help:"The same from a file; - is standard input. Header values belong here rather than in arguments."`
}

// policy is the JSON that the flags give; nil if none.
func (f endpointFlags) policy(stdin io.Reader) (json.RawMessage, error) {
	text, from := []byte(f.Policy), "--policy"
	if f.PolicyFile != "" {
		var err error
		if text, err = readInput(f.PolicyFile, stdin); err != nil {
			return nil, err
		}
		from = "--policy-file"
	}
	if len(text) == 0 {
		return nil, nil
	}
	if !json.Valid(text) {
		return nil, usageError(from + " is not JSON")
	}
	return text, nil
}

// patch is what an update changes, as JSON merge patch (RFC 7396).
func (c *endpointUpdateCmd) patch(stdin io.Reader) (json.RawMessage, error) {
	policy, err := c.policy(stdin)
	if err != nil {
		return nil, err
	}
	members := map[string]any{}
	if c.URL != nil {
		members["url"] = *c.URL
	}
	if c.Description != nil {
		members["description"] = *c.Description
	}
	if policy != nil {
		members["policy"] = policy
	}
	switch {
	case c.AllEventTypes && len(c.EventType) > 0:
		return nil, usageError("--all-event-types and --event-type exclude each other")
	case c.AllEventTypes:
		members["event_types"] = nil
	case len(c.EventType) > 0:
		members["event_types"] = c.EventType
	}
	if len(members) == 0 {
		return nil, usageError("say what to change: --url, --description, --event-type, --all-event-types, --policy or --policy-file")
	}
	return json.Marshal(members)
}

// maxInput bounds what is read from a file of flags.
const maxInput = 1 << 20

// readInput reads a file, or standard input for -.
func readInput(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxInput))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxInput))
}

// rules is what the sending side knows of URLs, headers and secrets.
type rules struct{ allow []netip.Prefix }

// CheckURL is [webhook.CheckURL] with the networks allowed here.
func (r rules) CheckURL(url string) error { return webhook.CheckURL(url, r.allow) }

// RedactURL is [webhook.RedactURL].
func (rules) RedactURL(url string) string { return webhook.RedactURL(url) }

// CheckHeaders is [webhook.CheckHeaders].
func (rules) CheckHeaders(headers map[string]string) error { return webhook.CheckHeaders(headers) }

// NewSecret is [webhook.NewSecret].
func (rules) NewSecret() (string, error) { return webhook.NewSecret() }

func typesOf(v projections.EndpointView) string {
	if len(v.EventTypes) == 0 {
		return "all"
	}
	return strings.Join(v.EventTypes, ",")
}

// viewsOf shows rows as the contract does.
func viewsOf[R, V any](rows []R, view func(R) V) []V {
	views := make([]V, len(rows))
	for i, r := range rows {
		views[i] = view(r)
	}
	return views
}

func itoa(n int) string { return strconv.Itoa(n) }

// instantOf is an optional time in a table.
func instantOf(i *domain.Instant) string {
	if i == nil {
		return "-"
	}
	return i.String()
}
