package domain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"waybill/domain"
)

func TestInstantJSON(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-03-01T12:00:00Z"`:           `"2026-03-01T12:00:00.000000Z"`,
		`"2026-03-01T13:30:00.5+01:30"`:    `"2026-03-01T12:00:00.500000Z"`,
		`"2026-03-01T12:00:00.123456999Z"`: `"2026-03-01T12:00:00.123456Z"`,
		`"1969-12-31T23:59:59.9999999Z"`:   `"1969-12-31T23:59:59.999999Z"`,
		`null`:                             `null`,
		`""`:                               `null`,
		`"yesterday"`:                      ``,
		`"2026-03-01"`:                     ``,
		`"2026-02-30T12:00:00Z"`:           ``,
		`1772366400`:                       ``,
		`true`:                             ``,
		`{}`:                               ``,
		`"2026-03-01T12:00:00Z and then"`:  ``,
	} {
		var i domain.Instant
		err := json.Unmarshal([]byte(text), &i)
		if got, _ := json.Marshal(i); (err == nil) != (want != "") || err == nil && string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	var i domain.Instant
	if err := i.UnmarshalJSON([]byte(`"`)); err == nil {
		t.Error("half a string is a time")
	}
}

func TestInstantSurvivesJSONAndText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := domain.At(time.Unix(rapid.Int64Range(-1e9, 1e11).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).In(time.FixedZone("x", 3600)))
		b, err := json.Marshal(at)
		var again, fromText domain.Instant
		text, _ := at.MarshalText()
		if err = errors.Join(err, json.Unmarshal(b, &again), fromText.UnmarshalText(text)); err != nil || again != at || fromText != at {
			t.Fatalf("%v: %s, %v, %v", at, b, again, err)
		}
	})
}

func TestInstant(t *testing.T) {
	odd := time.Date(2026, 3, 1, 12, 0, 0, 1999, time.FixedZone("x", 7200))
	if at := domain.At(odd); at.Nanosecond() != 1000 || at.Location() != time.UTC || at.Time.After(odd) {
		t.Errorf("%v is not cut off", at)
	}
	if here := time.Now(); !domain.At(time.Time{}).IsZero() || domain.At(here) != domain.At(here.Round(0)) {
		t.Error("zero stays zero, and a monotonic reading makes no difference")
	}
	if noon.After(time.Second) != in(time.Second) || noon.Later(in(1*time.Second)) != in(time.Second) ||
		in(time.Second).Later(noon) != in(time.Second) || noon.Later(domain.Instant{}) != noon {
		t.Error("Later returns the later of the two")
	}
	var none domain.Instant
	if text, err := none.MarshalText(); err != nil || len(text) != 0 {
		t.Errorf("got %q, %v", text, err)
	}
	if err := none.UnmarshalText(nil); err != nil || !none.IsZero() {
		t.Error("an empty text is no time")
	}
	var at struct {
		At domain.Instant `json:"at,omitzero"`
	}
	if b, err := json.Marshal(at); err != nil || string(b) != `{}` {
		t.Errorf("a zero instant is absent where it may be: %s, %v", b, err)
	}
}

func TestDurationAndHexJSON(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"1m30s"`: 90 * time.Second, `"0s"`: 0, `"0"`: 0, `"-1ns"`: -1, `"2562047h47m16.854775807s"`: math.MaxInt64, `null`: 0,
		`"1d"`: -99, `""`: -99, `90`: -99, `"9999999999h"`: -99,
	} {
		var d domain.Duration
		err := json.Unmarshal([]byte(text), &d)
		if (err != nil) != (want == -99) || err == nil && time.Duration(d) != want {
			t.Errorf("%s: got %v, %v", text, time.Duration(d), err)
		}
	}
	if b, err := json.Marshal(domain.Duration(90 * time.Second)); err != nil || string(b) != `"1m30s"` {
		t.Errorf("got %s, %v", b, err)
	}
	var h domain.Hex
	if b, err := json.Marshal(domain.Hex{0, 0xab}); err != nil || string(b) != `"00ab"` || json.Unmarshal([]byte(`"00AB"`), &h) != nil || h.String() != "00ab" {
		t.Errorf("got %s, %v, %v", b, err, h)
	}
	for _, bad := range []string{`"0"`, `"zz"`, `7`} {
		if json.Unmarshal([]byte(bad), &h) == nil {
			t.Errorf("%s is hexadecimal", bad)
		}
	}
}

func TestTexts(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"plain": {"because", true}, "umlauts": {"Übergröße 🚚", true}, "empty": {"", true}, "as long as may be": {strings.Repeat("x", domain.MaxReason), true},
		"longer": {strings.Repeat("x", domain.MaxReason+1), false}, "longer in bytes": {strings.Repeat("é", domain.MaxReason/2+1), false},
		"broken UTF-8": {"a\xffb", false}, "a surrogate": {"\xed\xa0\x80", false}, "U+0000": {"a\x00b", false}, "line breaks": {"a\r\nb", true},
	} {
		err := domain.CheckText("reason", c.text, domain.MaxReason)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
		if err := domain.CheckReason(c.text); (err == nil) != (c.ok && c.text != "") {
			t.Errorf("%s, as a reason: %v", name, err)
		}
	}
	if domain.CheckReason(" \t\n\u00a0 ") == nil {
		t.Error("blanks are no reason")
	}
}

func TestIdempotencyKeys(t *testing.T) {
	for key, ok := range map[string]bool{
		"k": true, "order 17~": true, strings.Repeat("k", 255): true,
		"": false, strings.Repeat("k", 256): false, "tab\t": false, "\x7f": false, "é": false, "a\x00": false, "\x1f": false, " ": true, "~": true,
	} {
		if err := domain.CheckIdempotencyKey(key); (err == nil) != ok || err != nil && !errors.Is(err, domain.ErrIdempotencyKey) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestSlugs(t *testing.T) {
	for slug, ok := range map[string]bool{
		"default": true, "system": true, "a": true, "7": true, "a-b--c": true, strings.Repeat("a", 63): true,
		"": false, "-": false, "-a": false, "a-": false, "A": false, "a_b": false, "a b": false, "ä": false, "a\n": false, strings.Repeat("a", 64): false,
	} {
		if err := domain.CheckSlug(slug); (err == nil) != ok || err != nil && !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%q: %v", slug, err)
		}
	}
}

func TestActors(t *testing.T) {
	for got, want := range map[domain.Actor]domain.Actor{
		domain.KeyActor(token(1)):          "key:01000000-0000-0000-0000-000000000001",
		domain.WorkerActor("w1"):           "worker:w1",
		domain.OperatorActor("jo", "host"): "operator:jo@host",
		domain.SystemActor("recovery"):     "system:recovery",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestScopes(t *testing.T) {
	for name, c := range map[string]struct {
		scopes []domain.Scope
		ok     bool
	}{
		"all": {domain.Scopes, true}, "one": {domain.Scopes[:1], true}, "none": {nil, false},
		"unknown": {[]domain.Scope{domain.ScopeRead, "root"}, false}, "empty": {[]domain.Scope{""}, false},
	} {
		if err := domain.CheckScopes(c.scopes); (err == nil) != c.ok || err != nil && !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusalsAreTheSameByTheirCode(t *testing.T) {
	with, fault := domain.ErrInvalidRequest.With("about this"), errors.New("x")
	switch {
	case !errors.Is(with, domain.ErrInvalidRequest), !errors.Is(fmt.Errorf("while: %w", with), domain.ErrInvalidRequest):
		t.Error("a refusal with another message is another refusal")
	case errors.Is(with, domain.ErrNotDue), domain.ErrNotDue.Is(fault), errors.Is(fault, domain.ErrNotDue):
		t.Error("two refusals are one")
	case with.Error() != "about this" || with.Kind != domain.Invalid || domain.ErrInvalidRequest.Message == "about this":
		t.Errorf("%+v", with)
	}
}
