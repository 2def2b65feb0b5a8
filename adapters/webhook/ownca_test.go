package webhook_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"waybill/domain"
)

// TestEndpointsOwnCA is case 23: an unknown CA is unreached, and a CA of the endpoint's
// own makes it work, for that endpoint alone.
func TestEndpointsOwnCA(t *testing.T) {
	t.Parallel()
	cert, _ := certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	other, _ := certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	url := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert}}, func(http.ResponseWriter, *http.Request) {})
	s := newSender(t)
	text := func(c tls.Certificate) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
	}
	for _, c := range []struct {
		ca      string
		outcome domain.Outcome
		reason  domain.Reason
	}{
		{"", domain.Unreached, domain.ReasonTLS}, {text(cert), domain.Succeeded, ""}, {text(other), domain.Unreached, domain.ReasonTLS},
		{text(other) + text(cert), domain.Succeeded, ""}, {"rubbish", domain.Unreached, domain.ReasonTLS}, {"", domain.Unreached, domain.ReasonTLS},
	} {
		r := requestTo(url)
		r.CA = c.ca
		expect(t, s.Send(t.Context(), r), c.outcome, c.reason)
	}
}
