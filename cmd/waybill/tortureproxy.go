package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync/atomic"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// wire is the connection of one process to the database, which can be made bad.
type wire struct {
	proxy *toxiproxy.Proxy
	url   string       // of the database, by way of the proxy
	count atomic.Int64 // of toxics so far
}

// toxic is what is wrong with a wire.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`   // upstream: to the database
	Toxicity   float32        `json:"toxicity"` // the share of connections that have it
	Attributes map[string]int `json:"attributes"`
}

// newWire opens a way to the database of a URL.
func newWire(name, databaseURL string) (*wire, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &wire{proxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", u.Host)}
	if err := w.proxy.Start(); err != nil {
		return nil, fmt.Errorf("open a proxy: %w", err)
	}
	u.Host = w.proxy.Listen
	w.url = u.String()
	return w, nil
}

// poison makes the wire bad; the function returned makes it good again. What was
// swallowed meanwhile is lost, and its connection is closed.
func (w *wire) poison(t toxic) (cure func(), err error) {
	t.Name = fmt.Sprintf("%s_%d", t.Type, w.count.Add(1))
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	if _, err := w.proxy.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("add a toxic: %w", err)
	}
	return func() { _ = w.proxy.Toxics.RemoveToxic(context.Background(), t.Name) }, nil
}

// close cuts every connection.
func (w *wire) close() { w.proxy.Stop() }
