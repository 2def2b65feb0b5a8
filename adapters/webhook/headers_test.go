package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"waybill/adapters/webhook"
)

func TestCheckHeadersAccepts(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"Authorization": "Bearer x y", "X-Api-Key": "", "Idempotency-Key": "k", "x!#$%&'*+-.^_`|~1": "ü", "Content-Encoding": "gzip",
	} {
		if err := webhook.CheckHeaders(map[string]string{name: value}); err != nil {
			t.Error(err)
		}
	}
	if err := webhook.CheckHeaders(nil); err != nil {
		t.Error(err)
	}
}

func TestCheckHeadersRefuses(t *testing.T) {
	t.Parallel()
	for _, h := range [][2]string{
		{"", "v"}, {"a b", "v"}, {"a:", "v"}, {"a\r\nb", "v"}, {"ä", "v"}, {"a(", "v"}, {"a\x00", "v"}, {"\xff", "v"},
		{"X", "pw\r\nY: 1"}, {"X", "pw\n"}, {"X", "pw\x00"}, {"X", "pw\t1"}, {"X", "pw\x7f"}, {"X", " pw"}, {"X", "pw "},
		{"Webhook-Id", "v"}, {"WEBHOOK-ANYTHING", "v"}, {"waybill-x", "v"}, {"Host", "v"}, {"content-length", "v"}, {"Content-Type", "v"},
		{"Connection", "v"}, {"Transfer-Encoding", "v"}, {"TE", "v"}, {"Trailer", "v"}, {"Upgrade", "v"}, {"Keep-Alive", "v"},
		{"Proxy-Authorization", "v"}, {"User-Agent", "v"}, {"traceparent", "v"}, {"TraceState", "v"}, {"Expect", "v"}, {"Accept-Encoding", "v"},
		{"X", strings.Repeat("v", 8192)},
	} {
		err := webhook.CheckHeaders(map[string]string{h[0]: h[1]})
		if err == nil {
			t.Errorf("%q: %.20q is accepted", h[0], h[1])
		} else if strings.Contains(err.Error(), "pw") {
			t.Errorf("leaks: %v", err)
		}
	}
}

func TestCheckHeadersBounds(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 33 {
		many[fmt.Sprint("X-", i)] = "v"
	}
	if webhook.CheckHeaders(many) == nil {
		t.Error("33 headers are accepted")
	}
	delete(many, "X-0")
	if err := webhook.CheckHeaders(many); err != nil {
		t.Error(err)
	}
	if webhook.CheckHeaders(map[string]string{"X-A": "1", "x-a": "2"}) == nil {
		t.Error("one header twice is accepted")
	}
}
