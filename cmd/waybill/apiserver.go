package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"waybill/adapters/postgres"
	"waybill/handlers/api"
	"waybill/handlers/command"
)

// Bounds of one connection, so that a slow or idle client holds nothing for long.
const (
	headerTime = 5 * time.Second
	readTime   = 60 * time.Second // of a whole request; a batch is at most 16 MiB
	writeTime  = 90 * time.Second // from a request's header to the end of its answer
	idleTime   = 2 * time.Minute
	maxHeaders = 64 << 10
)

// apiServer is the API, or the probes alone, on an address.
type apiServer struct {
	listener net.Listener
	server   *http.Server
}

// handler is the API over the node's parts, or what is left of it on a node without one:
// probes and metrics.
func (n *node) handler() http.Handler {
	c := n.apiConfig()
	if !n.config.API {
		return n.metrics.counting(api.Probes(c))
	}
	return n.metrics.counting(api.New(c))
}

func (n *node) apiConfig() api.Config {
	c := api.Config{
		Submitter: meteredSubmitter{n.submitter, n.metrics}, Operations: n.operations(), Eraser: command.Eraser{Ledger: n.ledger}, Remote: command.Remote{Ledger: n.ledger, Gone: n.disable}, Endpoints: n.endpoints(),
		Keys: command.Keys{Ledger: n.ledger}, Ledger: n.ledger, Ready: n.ledger, Proofs: n.ledger,
		Transient: postgres.Transient, Log: n.config.Log, MaxPayload: n.config.MaxPayload, Version: thisBuild().Version,
		Backlog: n.backlog, Metrics: n.metrics.page(),
	}
	if k := n.config.Signing; k != nil {
		c.Signer, c.Verifier = k, k.Verifier
	}
	return c
}

// listen takes the address; nobody is answered before serve.
func listen(c nodeConfig, h http.Handler) (*apiServer, error) {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return &apiServer{l, &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}}, nil
}

// serve answers until stop; a failure before that is sent on.
func (a *apiServer) serve(failed chan<- error) {
	if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("the API has ended: %w", err)
	}
}

// stop accepts nothing more and waits for requests in flight, then breaks them off.
func (a *apiServer) stop(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := a.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("requests in flight were broken off")
	}
	return errors.Join(err, a.server.Close())
}
