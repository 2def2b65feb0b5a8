package command_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"waybill/adapters/postgres"
	"waybill/adapters/postgres/postgrestest"
	"waybill/adapters/secrets"
	"waybill/domain"
	"waybill/handlers/command"
	"waybill/projections"
)

// How much is done and how long the search for an order may take. The versions in the
// answers leave it little to search: it takes milliseconds.
const (
	crowdDeliveries = 4
	crowdClients    = 6
	crowdCalls      = 250 // of each client, if the time suffices
	checkFor        = 60 * time.Second
)

// TestHistoriesAreLinearizable: clients with pools of their own claim, report (late and
// again too), replay, cancel, resolve and read a few deliveries at once, while claims run
// out; for each delivery there is an order of the calls, within what each lasted, in which
// the domain by itself gives the same answers (porcupine finds it). It fails if an append
// passes over its version, if a decision that came back stale is taken for done, or if a
// read may be old; see TestOrderIsMissed.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	history := c.act(5*time.Second, func(l *postgres.Ledger) ledgers { return l })
	if got := c.check(history); got != porcupine.Ok {
		t.Errorf("%d calls: %s", len(history), got)
	}
	t.Logf("%d calls in %s: %v", len(history), time.Since(c.begun), c.done)
	if c.lacks() {
		t.Errorf("of some kind no call came about; the history proves nothing of it: %v", c.done)
	}
	if rep, err := c.Verify(t.Context()); err != nil || len(rep.Faults) > 0 {
		t.Errorf("%+v %v", rep, err)
	}
}

// TestOrderIsMissed shows that the check above can fail: over a ledger with one fault
// there is no such order.
func TestOrderIsMissed(t *testing.T) {
	t.Parallel()
	for name, faulty := range map[string]func(*postgres.Ledger) ledgers{
		"reads that may be old": func(l *postgres.Ledger) ledgers {
			return &oldReads{Ledger: l, row: map[uuid.UUID]projections.Delivery{}}
		},
		"a stale decision that is called done": func(l *postgres.Ledger) ledgers { return neverStale{l} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t)
			if got := c.check(c.act(1500*time.Millisecond, faulty)); got != porcupine.Illegal {
				t.Errorf("%s", got)
			}
		})
	}
}

// oldReads answers every second read of a delivery with what the one before it found, as
// a replica or a cache does.
type oldReads struct {
	*postgres.Ledger
	row map[uuid.UUID]projections.Delivery
}

func (o *oldReads) Delivery(ctx context.Context, tenant string, id uuid.UUID) (projections.Delivery, error) {
	if old, ok := o.row[id]; ok {
		delete(o.row, id)
		return old, nil
	}
	d, err := o.Ledger.Delivery(ctx, tenant, id)
	o.row[id] = d
	return d, err
}

// neverStale says yes to appends that wrote nothing, as ON CONFLICT DO NOTHING does.
type neverStale struct{ *postgres.Ledger }

func (n neverStale) Append(ctx context.Context, changes []projections.DeliveryChange) ([]uuid.UUID, error) {
	_, err := n.Ledger.Append(ctx, changes)
	return nil, err
}

// crowd is clients that act on a few deliveries at once and note what they asked, when,
// and what they were told.
type crowd struct {
	*postgres.Ledger
	t        *testing.T
	db       *postgrestest.DB
	vault    *secrets.Vault
	ids      []uuid.UUID // deliveries
	places   []uuid.UUID // their endpoints, one each: a claim is of one delivery
	policies []domain.Policy
	begun    time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	done    map[string]int       // calls by kind
	held    [][]command.Finished // every claim ever made, by delivery: tokens for reports
}

// ledgers is what a client acts through.
type ledgers interface {
	command.RecordLedger
	command.OperateLedger
	Claim(ctx context.Context, r projections.ClaimRequest) (projections.Batch, error)
	Recover(ctx context.Context) (int, []projections.Delivery, error)
}

// newCrowd makes the deliveries, most of them at endpoints that hold.
func newCrowd(t *testing.T) *crowd {
	t.Helper()
	vault, err := secrets.New()
	if err != nil {
		t.Fatal(err)
	}
	db := postgrestest.New(t)
	c := &crowd{Ledger: postgres.Open(db.App, postgres.Config{Vault: vault}), t: t, db: db, vault: vault, done: map[string]int{}}
	submit := command.NewSubmitter(c.Ledger, command.SubmitOptions{})
	t.Cleanup(submit.Close)
	endpoints := command.Endpoints{Ledger: c.Ledger, Rules: rules{}}
	for i := range crowdDeliveries {
		policy := `{"retries":{"delays":["0s","0s","0s"]},"jitter":0,"on_unknown_outcome":"` + []string{"hold", "retry"}[i%4/3] + `"}`
		e, _, err := endpoints.Create(t.Context(), by, command.EndpointInput{URL: "https://example.com/", Policy: []byte(policy)})
		if err != nil {
			t.Fatal(err)
		}
		a, err := submit.Submit(t.Context(), by, message(e.ID, "", "x"))
		if err != nil {
			t.Fatal(err)
		}
		c.ids, c.places = append(c.ids, a.Deliveries[0].DeliveryID), append(c.places, e.ID)
		c.policies, c.held = append(c.policies, e.Config.Policy), append(c.held, nil)
	}
	return c
}

// act runs the clients, each with a pool of its own, and one that ends claims which have
// run out, and returns the history.
func (c *crowd) act(within time.Duration, through func(*postgres.Ledger) ledgers) []porcupine.Operation {
	c.t.Helper()
	c.begun = time.Now()
	ctx, cancel := context.WithTimeout(c.t.Context(), within)
	defer cancel()
	var clients, recovery sync.WaitGroup
	start, over := make(chan struct{}), make(chan struct{})
	for client := range crowdClients {
		l := through(c.elsewhere())
		clients.Go(func() {
			<-start
			for n := 0; n < crowdCalls && ctx.Err() == nil || c.lacks() && time.Since(c.begun) < 4*within; n++ {
				c.one(l, client)
			}
		})
	}
	l := c.elsewhere()
	recovery.Go(func() {
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-over:
				tick.Stop()
				return
			case <-tick.C:
				c.recover(l, crowdClients)
			}
		}
	})
	close(start)
	clients.Wait()
	close(over)
	recovery.Wait()
	slices.SortStableFunc(c.history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return c.history
}

// elsewhere is the ledger through a pool of its own.
func (c *crowd) elsewhere() *postgres.Ledger {
	c.t.Helper()
	pool, err := postgres.Connect(c.t.Context(), c.db.URL, postgres.ConnectOptions{MaxConns: 2})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(pool.Close)
	return postgres.Open(pool, postgres.Config{Vault: c.vault})
}

func (c *crowd) check(history []porcupine.Operation) porcupine.CheckResult {
	due := domain.At(time.Unix(1e9, 0))
	return porcupine.CheckOperationsTimeout(sequential(c.policies, due), history, checkFor)
}
