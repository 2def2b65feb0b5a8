package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// apiClient calls the API as an application does.
type apiClient struct {
	url, key string
	http     http.Client
}

func newAPIClient(url, key string) *apiClient {
	return &apiClient{url: url, key: key, http: http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{}}}
}

// Close ends idle connections.
func (a *apiClient) Close() error {
	a.http.CloseIdleConnections()
	return nil
}

// createEndpoint makes an endpoint and returns its id and signing secret.
func (a *apiClient) createEndpoint(ctx context.Context, url, description, policy string) (uuid.UUID, string, error) {
	body, err := json.Marshal(map[string]any{"url": url, "description": description, "policy": json.RawMessage(policy)})
	if err != nil {
		return uuid.Nil, "", err
	}
	var made struct {
		ID     uuid.UUID `json:"id"`
		Secret string    `json:"secret"`
	}
	err = a.post(ctx, "/v1/endpoints", nil, body, &made)
	return made.ID, made.Secret, err
}

// submit hands in a message; it returns once that is committed.
func (a *apiClient) submit(ctx context.Context, endpoint uuid.UUID, eventType string, payload []byte) error {
	var accepted struct {
		DeliveryID uuid.UUID `json:"delivery_id"`
	}
	headers := map[string]string{"Waybill-Event-Type": eventType}
	return a.post(ctx, "/v1/endpoints/"+endpoint.String()+"/deliveries", headers, payload, &accepted)
}

// post sends JSON and reads the answer into a value; any status but 2xx is an error.
func (a *apiClient) post(ctx context.Context, path string, headers map[string]string, body []byte, into any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+a.key)
	q.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		q.Header.Set(name, value)
	}
	answer, err := a.http.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	switch {
	case err != nil:
		return fmt.Errorf("POST %s: %w", path, err)
	case answer.StatusCode/100 != 2:
		return fmt.Errorf("POST %s: %s: %s", path, answer.Status, text)
	}
	return json.Unmarshal(text, into)
}
