package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"waybill/adapters/webhook"
	"waybill/domain"
)

type received struct {
	header http.Header
	body   []byte
	length int64
}

// capture sends r to a server and returns what arrived there.
func capture(t *testing.T, r domain.Request) received {
	t.Helper()
	var got received
	r.URL = httpServer(t, func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		got = received{req.Header, body, req.ContentLength}
	})
	expect(t, newSender(t).Send(t.Context(), r), domain.Succeeded, "")
	return got
}

func TestPayloadsArriveAsTheyAreAndVerify(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string][]byte{
		"empty": nil, "nul": []byte("a\x00b\x00"), "invalid utf-8": {0xff, 0xfe, 0xc3, 0x28},
		"format verbs": []byte("%s%d%!"), "surrogate": []byte(`{"a":"\ud800","b":1e400}`),
		"1 MiB": bytes.Repeat([]byte{0, 0x80, 'x', '\n'}, 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := requestTo("")
			r.Payload = payload
			got := capture(t, r)
			if !bytes.Equal(got.body, payload) || got.length != int64(len(payload)) {
				t.Fatalf("%d bytes arrived (Content-Length %d), %d were sent", len(got.body), got.length, len(payload))
			}
			verifies(t, secretA, got)
		})
	}
}

func verifies(t *testing.T, secret string, got received) {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Verify(got.body, got.header); err != nil {
		t.Fatal(err)
	}
}

func TestRotationSignsWithBothSecretsInOrder(t *testing.T) {
	t.Parallel()
	secretB, err := webhook.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	r := requestTo("")
	r.Secrets = []string{secretB, secretA}
	got := capture(t, r)
	verifies(t, secretA, got)
	verifies(t, secretB, got)
	signatures := strings.Fields(got.header.Get("webhook-signature"))
	if len(signatures) != 2 {
		t.Fatalf("signatures %q", signatures)
	}
	got.header.Set("webhook-signature", signatures[0])
	verifies(t, secretB, got)
}

func TestHeadersOfARequest(t *testing.T) {
	t.Parallel()
	r := requestTo("")
	r.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.IdempotencyHeader = "Idempotency-Key"
	r.Headers = map[string]string{
		"Authorization": "Bearer x", "webhook-id": "forged", "User-Agent": "forged", "Idempotency-Key": "forged",
		"WAYBILL-ATTEMPT": "99", "content-type": "text/forged", "Connection": "close", "Host": "forged",
	}
	h := capture(t, r).header
	for name, want := range map[string]string{
		"Webhook-Id": r.MessageID.String(), "Waybill-Delivery-Id": r.DeliveryID.String(), "Waybill-Attempt": "3",
		"Waybill-Event-Type": "order.paid", "Traceparent": r.TraceParent, "User-Agent": "waybill/1.2.3",
		"Content-Type": "application/json", "Idempotency-Key": r.MessageID.String(), "Authorization": "Bearer x",
		"Connection": "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestNothingIsInvented(t *testing.T) {
	t.Parallel()
	r := requestTo("")
	r.ContentType, r.EventType, r.Payload = "", "", nil
	var head string
	r.URL = rawServer(t, func(_ int, c net.Conn, br *bufio.Reader) {
		for line := ""; line != "\r\n"; {
			line, _ = br.ReadString('\n')
			head += line
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	expect(t, newSender(t).Send(t.Context(), r), domain.Succeeded, "")
	lower := strings.ToLower(head)
	if !strings.HasPrefix(head, "POST / HTTP/1.1\r\n") || !strings.Contains(lower, "content-length: 0\r\n") {
		t.Fatal(head)
	}
	for _, name := range []string{"content-type", "waybill-event-type", "traceparent", "transfer-encoding"} {
		if strings.Contains(lower, "\r\n"+name) {
			t.Errorf("%s was sent:\n%s", name, head)
		}
	}
}

func TestWhatCannotBeBuiltIsInternal(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*domain.Request){
		"no secret":     func(r *domain.Request) { r.Secrets = nil },
		"bad secret":    func(r *domain.Request) { r.Secrets = []string{"whsec_hunter2!"} },
		"empty secret":  func(r *domain.Request) { r.Secrets = []string{"whsec_"} },
		"bad header":    func(r *domain.Request) { r.Headers = map[string]string{"X": "hunter2!\r\nY: 1"} },
		"bad url":       func(r *domain.Request) { r.URL = "https://u:hunter2!@h/%zz?k=hunter2!" },
		"other scheme":  func(r *domain.Request) { r.URL = "file:///etc/hunter2!" },
		"bad eventtype": func(r *domain.Request) { r.EventType = "a\nb" },
	} {
		t.Run(name, func(t *testing.T) {
			r := requestTo("https://127.0.0.1:1/?k=hunter2!")
			change(&r)
			res := newSender(t).Send(context.Background(), r)
			expect(t, res, domain.Unreached, domain.ReasonInternal)
			if strings.Contains(string(res.Detail), "hunter2!") {
				t.Fatalf("detail leaks: %s", res.Detail)
			}
		})
	}
}

func TestNewSecret(t *testing.T) {
	t.Parallel()
	a, _ := webhook.NewSecret()
	b, _ := webhook.NewSecret()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(a, "whsec_"))
	if err != nil || len(key) != 32 || a == b || !strings.HasPrefix(a, "whsec_") {
		t.Fatalf("%q %q %v", a, b, err)
	}
}

func BenchmarkSend(b *testing.B) {
	s := newSender(b)
	r := requestTo(httpServer(b, func(http.ResponseWriter, *http.Request) {}))
	r.Payload = bytes.Repeat([]byte("x"), 1024)
	b.ReportAllocs()
	for b.Loop() {
		if res := s.Send(b.Context(), r); res.Outcome != domain.Succeeded {
			b.Fatal(string(res.Detail))
		}
	}
}
