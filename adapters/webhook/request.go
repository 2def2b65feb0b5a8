package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"waybill/domain"
)

// secretPrefix marks a symmetric signing secret (Standard Webhooks 1.0).
const secretPrefix = "whsec_"

// secretBytes is the size of a new secret; Standard Webhooks asks for 24 to 64.
const secretBytes = 32

// NewSecret returns a fresh signing secret, "whsec_" and base64 of 32 random
// bytes.
func NewSecret() (string, error) {
	key := make([]byte, secretBytes)
	if _, err := rand.Read(key); err != nil {
		return "", fmt.Errorf("draw signing secret: %w", err)
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(key), nil
}

// request builds what goes on the wire. Its errors name no value of the request.
// GetBody is removed so that net/http has one way less to send it again.
func (s *Sender) request(ctx context.Context, r domain.Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Payload))
	if err != nil {
		return nil, errors.New("the endpoint's URL does not parse")
	}
	req.GetBody = nil
	signature, err := sign(r)
	if err != nil {
		return nil, err
	}
	setHeaders(req.Header, r, signature)
	req.Header.Set("User-Agent", s.userAgent)
	return req, nil
}

// setHeaders puts the endpoint's own headers first, so that ours replace them.
func setHeaders(h http.Header, r domain.Request, signature string) {
	for name, value := range r.Headers {
		if !reserved(name) {
			h.Set(name, value)
		}
	}
	if r.IdempotencyHeader != "" && !reserved(r.IdempotencyHeader) {
		h.Set(r.IdempotencyHeader, r.MessageID.String())
	}
	h.Set(standardwebhooks.HeaderWebhookID, r.MessageID.String())
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(r.At.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, signature)
	h.Set("Waybill-Delivery-Id", r.DeliveryID.String())
	h.Set("Waybill-Attempt", strconv.Itoa(r.Attempt))
	h.Set("Accept-Encoding", "gzip")
	setPresent(h, "Waybill-Event-Type", r.EventType)
	setPresent(h, "Content-Type", r.ContentType)
	setPresent(h, "Traceparent", r.TraceParent)
}

func setPresent(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// sign makes one "v1," signature for each secret, in order, separated by spaces.
func sign(r domain.Request) (string, error) {
	if len(r.Secrets) == 0 {
		return "", errors.New("the endpoint has no signing secret")
	}
	signatures := make([]string, len(r.Secrets))
	for i, secret := range r.Secrets {
		signature, err := signOne(secret, r.MessageID.String(), r.At, r.Payload)
		if err != nil {
			return "", fmt.Errorf("the endpoint's signing secret %d of %d is malformed", i+1, len(r.Secrets))
		}
		signatures[i] = signature
	}
	return strings.Join(signatures, " "), nil
}

func signOne(secret, id string, at time.Time, payload []byte) (string, error) {
	if strings.TrimPrefix(secret, secretPrefix) == "" {
		return "", errors.New("empty secret")
	}
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return "", err
	}
	return w.Sign(id, at, payload)
}
