// Command ledger uses the ledger as a library: it opens one, hands in a message,
// delivers it with a worker of its own to a receiver of its own, and prints the history.
//
//	WAYBILL_DATABASE_URL=postgres://… WAYBILL_KEYSET_FILE=keyset.json ledger
//
// The database is migrated before (waybill migrate).
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/secrets"
	"waybill/adapters/webhook"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/handlers/worker"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout, os.Getenv("WAYBILL_DATABASE_URL"), os.Getenv("WAYBILL_KEYSET_FILE")); err != nil {
		log.Fatal(err)
	}
}

// by is who acts, as the log will name it.
var by = command.Caller{Tenant: domain.DefaultTenant, Actor: domain.SystemActor("example")}

// here is where the receiver of this example is; nobody else needs it.
var here = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func run(ctx context.Context, out io.Writer, databaseURL, keyset string) error {
	vault, err := secrets.FromFile(keyset)
	if err != nil {
		return err
	}
	pool, err := postgres.Connect(ctx, databaseURL, postgres.ConnectOptions{Name: "example"})
	if err != nil {
		return err
	}
	defer pool.Close()
	ledger := postgres.Open(pool, postgres.Config{Vault: vault})
	if err := ledger.CheckSchema(ctx); err != nil {
		return err
	}
	defer startWorker(ctx, ledger)()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	delivery, err := submit(ctx, ledger, receiver.URL)
	if err != nil {
		return err
	}
	return history(ctx, out, ledger, delivery)
}

// startWorker delivers until the function that it returns is called, which waits for
// what is under way.
func startWorker(ctx context.Context, ledger *postgres.Ledger) (stop func()) {
	sender := webhook.New(webhook.Config{AllowNetworks: here})
	w := worker.New(worker.Config{Name: "example", Ledger: ledger, Sender: sender, Isolable: postgres.Isolable})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			log.Print(err)
		}
	})
	return func() {
		cancel()
		running.Wait()
		sender.Close()
	}
}

// submit makes an endpoint and hands in one message for it. The key makes it safe to
// do so again when an answer is lost.
func submit(ctx context.Context, ledger *postgres.Ledger, url string) (uuid.UUID, error) {
	endpoint, _, err := command.Endpoints{Ledger: ledger, Rules: rules{}}.Create(ctx, by, command.EndpointInput{URL: url})
	if err != nil {
		return uuid.Nil, err
	}
	submitter := command.NewSubmitter(ledger, command.SubmitOptions{Isolable: postgres.Isolable})
	defer submitter.Close()
	accepted, err := submitter.Submit(ctx, by, command.Submission{
		EndpointID: endpoint.ID, EventType: "order.paid", ContentType: "application/json",
		IdempotencyKey: "order-4711-paid", HasKey: true, Payload: []byte(`{"order":4711}`),
	})
	if err != nil {
		return uuid.Nil, err
	}
	return accepted.Deliveries[0].DeliveryID, nil
}

// history waits until the delivery has ended and prints what happened to it.
func history(ctx context.Context, out io.Writer, ledger *postgres.Ledger, id uuid.UUID) error {
	for {
		d, err := ledger.Delivery(ctx, by.Tenant, id)
		if err != nil {
			return err
		}
		if d.State.Terminal() {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	records, err := ledger.Stream(ctx, by.Tenant, "delivery", id, 0, 100)
	if err != nil {
		return err
	}
	for _, r := range records {
		if _, err := fmt.Fprintln(out, r.Seq, r.Name, r.Actor, string(r.Data)); err != nil {
			return err
		}
	}
	return nil
}

// rules say which URLs are allowed; these are the product's own.
type rules struct{}

// CheckURL is [webhook.CheckURL].
func (rules) CheckURL(url string) error { return webhook.CheckURL(url, here) }

// RedactURL is [webhook.RedactURL].
func (rules) RedactURL(url string) string { return webhook.RedactURL(url) }

// CheckHeaders is [webhook.CheckHeaders].
func (rules) CheckHeaders(headers map[string]string) error { return webhook.CheckHeaders(headers) }

// NewSecret is [webhook.NewSecret].
func (rules) NewSecret() (string, error) { return webhook.NewSecret() }
