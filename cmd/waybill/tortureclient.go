package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client calls the API as an application does that expects the worst of it: an answer
// is awaited for a few seconds, and none is a case like others.
type client struct {
	url, key string
	http     http.Client
}

func newClient(url, key string) *client {
	return &client{url: url, key: key, http: http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// call returns the status, 0 if there was no answer, and reads a 2xx into a value.
func (c *client) call(ctx context.Context, method, path, key string, body []byte, into any) (status int, text string) {
	q, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	q.Header.Set("Authorization", "Bearer "+c.key)
	q.Header.Set("Content-Type", "application/json")
	if key != "" {
		q.Header.Set("Idempotency-Key", key)
		q.Header.Set("Content-Type", "application/octet-stream")
		q.Header.Set("Waybill-Event-Type", "torture")
	}
	answer, err := c.http.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	read, err := io.ReadAll(io.LimitReader(answer.Body, 8<<20))
	if err != nil {
		return 0, err.Error()
	}
	if answer.StatusCode/100 == 2 && into != nil {
		if err := json.Unmarshal(read, into); err != nil {
			return answer.StatusCode, fmt.Sprintf("%s: %s", err, read)
		}
	}
	return answer.StatusCode, string(read)
}
