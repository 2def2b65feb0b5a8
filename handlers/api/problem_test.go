package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"waybill/domain"
)

// TestEveryKindHasItsStatus walks the kinds; one that is added to the domain and not
// to the table fails here.
func TestEveryKindHasItsStatus(t *testing.T) {
	t.Parallel()
	want := map[domain.Kind]int{
		domain.Invalid: 400, domain.Unauthorized: 401, domain.Forbidden: 403, domain.NotFound: 404, domain.Conflict: 409, domain.Gone: 410,
		domain.Precondition: 412, domain.TooLarge: 413, domain.Unprocessable: 422, domain.RateLimited: 429, domain.Unavailable: 503,
	}
	for kind := domain.Invalid; kind <= domain.Unavailable; kind++ {
		p := refused(&domain.Error{Kind: kind, Code: "code", Message: "message"})
		if p.Status != want[kind] || p.Code != "code" || p.Detail != "message" || p.Type != "about:blank" || p.Title != http.StatusText(want[kind]) {
			t.Errorf("kind %d: %+v", kind, p)
		}
		if again := p.header.Get("Retry-After"); (again == "1") != (kind == domain.Unavailable) {
			t.Errorf("kind %d: Retry-After %q", kind, again)
		}
	}
	if len(statuses) != len(want) {
		t.Errorf("%d kinds in the table", len(statuses))
	}
}

// TestWhatHumaFindsIsNamedAndNotRepeated: huma's own findings carry the value; ours
// do not.
func TestWhatHumaFindsIsNamedAndNotRepeated(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{
		422: "invalid_request", 400: "invalid_request", 415: "invalid_request", 408: "invalid_request", 500: "invalid_request", 413: "payload_too_large",
	} {
		p := malformed(status, "validation failed", errors.New("read tcp 10.0.0.1: reset")).(*Problem)
		if p.Code != code || p.Status != map[string]int{"invalid_request": 400, "payload_too_large": 413}[code] {
			t.Errorf("%d: %+v", status, p)
		}
		if status >= 500 && (len(p.Errors) > 0 || p.Detail == "") {
			t.Errorf("%d: %+v", status, p)
		}
	}
}

func TestEscapedBytesDifferWhereTheBytesDo(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, s := range []string{"", `\`, `\\`, `"`, `\"`, `\\"`, `\x00`, "\x00", `\\x00`, "\xff", "\ufffd", "\n", `\n`, "é", "\u202e"} {
		shown := escaped([]byte(s))
		if other, ok := seen[shown]; ok {
			t.Errorf("%q and %q are both shown as %s", s, other, shown)
		}
		seen[shown] = s
	}
}

func TestJSONThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		`{"a":"\u0000"}`: errNUL, `{"\u0000":1}`: errNUL, `["\ud800"]`: errLoneSurrogate, `["\udc00"]`: errLoneSurrogate,
		`["\ud800\ud800"]`: errLoneSurrogate, `["\ud800x"]`: errLoneSurrogate, `["\ud800\u0041"]`: errLoneSurrogate, "[\"\xff\"]": errNotUTF8,
		`{`: errNotJSON, ``: errNotJSON, `{} {}`: errNotJSON, "[\"\x00\"]": errNotJSON, "nul": errNotJSON,
	} {
		if err := checkJSON([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	for _, text := range []string{`{"a":1,"a":2}`, `[{"b":{"a":1,"\u0061":2}}]`} {
		if err := checkJSON([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	for _, text := range []string{`{"a":{"a":1},"b":[{"a":1},{"a":1}]}`, `"\ud83d\ude00 \\u0000 \\\\ \" é"`, `1e400`, ` null `, `"\uFFFD"`} {
		if err := checkJSON([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	deep := make([]byte, 1<<20)
	for i := range deep {
		deep[i] = '['
	}
	if err := checkJSON(deep); !errors.Is(err, errNotJSON) {
		t.Errorf("a million brackets: %v", err)
	}
}

// FuzzMembers: members are the object's own bytes, whatever they hold.
func FuzzMembers(f *testing.F) {
	f.Add(`{"payload": {"a" : 1e400, "a":"\ud800\u0000"} , "b":"x"}`)
	f.Add(`{"a":"b"}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := members([]byte(text))
		if err != nil || syntax([]byte(text)) != nil {
			return
		}
		for name, value := range all {
			if syntax(value) != nil || !strings.Contains(text, string(value)) {
				t.Errorf("%q: %q is not JSON, or not a piece of it", name, value)
			}
		}
	})
}
