package api_test

import (
	"encoding/base64"
	"fmt"
	"sync"
	"testing"
	"time"

	"waybill/domain"
)

// work is one claimed delivery as a remote worker is given it.
type work struct {
	DeliveryID string `json:"delivery_id"`
	MessageID  string `json:"message_id"`
	Payload    string `json:"payload_base64"`
	Token      string `json:"claim_token"`
	Attempt    int    `json:"attempt"`
	LeaseUntil string `json:"lease_until"`
}

func (w *world) remote(more string) string {
	w.t.Helper()
	made := w.post("/v1/endpoints", `{"mode":"remote"`+more+`}`).is(201)
	if made.text("secret") != "" || made.text("mode") != "remote" {
		w.t.Errorf("a remote endpoint %s", made.body)
	}
	return "/v1/endpoints/" + made.text("id")
}

func (w *world) claim(limit int, query string) []work {
	w.t.Helper()
	var got struct{ Items []work }
	w.post("/v1/claims"+query, fmt.Sprintf(`{"worker":"py-1","limit":%d,"lease_seconds":10}`, limit)).is(200).into(&got)
	return got.Items
}

func (w *world) report(c work, rest string) answer {
	w.t.Helper()
	return w.post("/v1/claims/"+c.DeliveryID+"/result", `{"claim_token":"`+c.Token+`",`+rest+`}`)
}

// TestRemoteWorker claims, extends, reports and releases as the contract says.
func TestRemoteWorker(t *testing.T) {
	t.Parallel()
	w := start(t)
	e := w.remote(`,"policy":{"retries":{"delays":["0s","0s"]},"jitter":0}`)
	d := w.submit(e, "\x00\xffbytes", "Content-Type", "application/x-odd", "Waybill-Event-Type", "t.a")
	w.submit(w.endpoint(), "of mode http")
	list := w.claim(10, "")
	if len(list) != 1 || list[0].Payload != base64.StdEncoding.EncodeToString([]byte("\x00\xffbytes")) || list[0].Attempt != 1 {
		t.Fatalf("claimed %+v", list)
	}
	c := list[0]
	if again := w.claim(10, ""); len(again) != 0 {
		t.Errorf("claimed twice: %+v", again)
	}
	if until := w.post("/v1/claims/"+c.DeliveryID+"/extend", `{"claim_token":"`+c.Token+`","lease_seconds":3600}`).is(200).text("lease_until"); until <= c.LeaseUntil {
		t.Errorf("extended from %s to %s", c.LeaseUntil, until)
	}
	for range 2 { // the same token again: the first answer
		if got := w.report(c, `"outcome":"refused","status":500,"reason":"http_status"`).is(200).object(); got["applied"] != true || got["superseded"] != false || got["attempt"] != 1.0 || got["state"] != "pending" {
			t.Errorf("refused: %v", got)
		}
	}
	w.post("/v1/claims/"+c.DeliveryID+"/extend", `{"claim_token":"`+c.Token+`","lease_seconds":60}`).refuses(409, "claim_superseded")
	w.post("/v1/claims/"+c.DeliveryID+"/release", `{"claim_token":"`+c.Token+`"}`).refuses(409, "claim_superseded")
	c = w.claim(1, "")[0]
	if r := w.post("/v1/claims/"+c.DeliveryID+"/release", `{"claim_token":"`+c.Token+`"}`).is(200).object(); c.Attempt != 2 || r["state"] != "pending" || r["cycle_attempts"] != 1.0 {
		t.Errorf("released attempt %d: %v", c.Attempt, r)
	}
	c = w.claim(1, "")[0]
	if got := w.report(c, `"outcome":"succeeded","status":204`).is(200).object(); c.Attempt != 3 || got["state"] != "delivered" {
		t.Errorf("delivered as attempt %d: %v", c.Attempt, got)
	}
	if got := w.get(d).is(200).object(); got["state"] != "delivered" || got["attempts"] != 3.0 {
		t.Errorf("%v", got)
	}
}

// TestForgedTokens: a token that was never issued for this delivery, a foreign one, and
// another tenant's delivery record nothing.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	w := start(t)
	e := w.remote("")
	w.submit(e, "a")
	w.submit(e, "b")
	list := w.claim(2, "")
	forged, foreign, rubbish := list[0], list[0], list[0]
	forged.Token, foreign.Token, rubbish.Token = "01890a5d-ac96-774b-bcce-b302099a8057", list[1].Token, "x"
	for _, c := range []work{forged, foreign, rubbish} {
		w.report(c, `"outcome":"succeeded"`).refuses(404, "claim_not_found")
		w.post("/v1/claims/"+c.DeliveryID+"/extend", `{"claim_token":"`+c.Token+`","lease_seconds":60}`).refuses(404, "claim_not_found")
		w.post("/v1/claims/"+c.DeliveryID+"/release", `{"claim_token":"`+c.Token+`"}`).refuses(404, "claim_not_found")
	}
	if v := w.get("/v1/deliveries/" + list[0].DeliveryID).is(200).object()["version"]; v != 2.0 {
		t.Errorf("something was recorded: version %v", v)
	}
	for _, rest := range []string{`"outcome":"done"`, `"outcome":"refused","status":99`, `"outcome":"refused","reason":"because"`} {
		w.report(list[0], rest).refuses(400, "invalid_request")
	}
	for _, body := range []string{`{"worker":"","limit":1,"lease_seconds":10}`, `{"worker":"w","limit":0,"lease_seconds":10}`, `{"worker":"w","limit":101,"lease_seconds":10}`,
		`{"worker":"w","limit":1,"lease_seconds":9}`, `{"worker":"w","limit":1,"lease_seconds":3601}`} {
		w.post("/v1/claims", body).refuses(400, "invalid_request")
	}
	w.post("/v1/claims?wait=1h", `{"worker":"w","limit":1,"lease_seconds":10}`).refuses(400, "invalid_request")
	http := w.endpoint()
	w.post("/v1/claims", `{"worker":"w","limit":1,"lease_seconds":10,"endpoint_id":"`+http[len("/v1/endpoints/"):]+`"}`).refuses(409, "endpoint_not_remote")
	w.newTenant("other")
	w.key = w.newKey("other", domain.ScopeClaim)
	w.report(list[0], `"outcome":"succeeded"`).refuses(404, "delivery_not_found")
	w.post("/v1/claims", `{"worker":"w","limit":1,"lease_seconds":10,"endpoint_id":"`+e[len("/v1/endpoints/"):]+`"}`).refuses(404, "endpoint_not_found")
}

// TestLateRemoteWorker: a claim that ran out belongs to the next; the late result is
// recorded as superseded, and a success of it settles the delivery once nobody holds it.
func TestLateRemoteWorker(t *testing.T) {
	t.Parallel()
	w := start(t)
	e := w.remote(`,"policy":{"retries":{"delays":["0s","0s","0s"]},"jitter":0}`)
	w.submit(e, "x")
	first := w.claim(1, "")[0]
	if _, err := w.db.Super().Exec(t.Context(), "update waybill.claims set lease_until = now() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}
	if _, ended, err := w.ledger.Recover(t.Context()); err != nil || len(ended) != 1 {
		t.Fatal(ended, err)
	}
	second := w.claim(1, "?wait=5s")[0]
	for range 2 {
		if got := w.report(first, `"outcome":"succeeded"`).is(200).object(); got["applied"] != false || got["superseded"] != true || got["attempt"] != 1.0 || got["state"] != "processing" {
			t.Errorf("late: %v", got)
		}
	}
	if got := w.report(second, `"outcome":"refused"`).is(200).object(); got["superseded"] != false || got["state"] != "delivered" {
		t.Errorf("the holder: %v", got)
	}
	if rep, err := w.ledger.Verify(t.Context()); err != nil || len(rep.Faults) > 0 {
		t.Errorf("%+v %v", rep, err)
	}
}

// TestLongPollFindsWhatComes: a waiting worker gets work soon after it is handed in, and
// an empty answer after its time.
func TestLongPollFindsWhatComes(t *testing.T) {
	t.Parallel()
	w := start(t)
	e := w.remote("")
	if got := w.claim(1, "?wait=200ms"); len(got) != 0 {
		t.Errorf("claimed %+v", got)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(300 * time.Millisecond)
		w.submit(e, "x")
	})
	if got := w.claim(1, "?wait=20s"); len(got) != 1 {
		t.Errorf("claimed %+v", got)
	}
	wg.Wait()
}

// TestRemoteWorkersShareTheWork: ten at once partition it.
func TestRemoteWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	w := start(t)
	for i := range 3 {
		e := w.remote("")
		for range 20 {
			w.submit(e, fmt.Sprint(i))
		}
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for {
				list := w.claim(5, "")
				if len(list) == 0 {
					return
				}
				mu.Lock()
				for _, c := range list {
					seen[c.DeliveryID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d of 60 were claimed", len(seen))
	}
}
