package main

import (
	"encoding/json"
	"os"
	"testing"

	"waybill/adapters/postgres/postgrestest"
)

// TestBench runs each benchmark of the log on a small one: it ends well, has looked at
// every event and leaves nothing behind on the server.
func TestBench(t *testing.T) {
	t.Parallel()
	db := postgrestest.Empty(t)
	for name, member := range map[string]string{"verify": "events_per_second", "rebuild": "events_per_second", "as-of": "counted"} {
		o := operatorOf{t: t, db: db}
		cmd := o.command("bench", name, "--events", "4000", "--json")
		cmd.Env = append(os.Environ(), placeVariable+"="+db.SuperURL)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(name, err, string(out))
		}
		var v map[string]float64
		if err := json.Unmarshal(out, &v); err != nil || v["events"] < 4000 || v[member] <= 0 {
			t.Errorf("%s: %s %v", name, out, err)
		}
	}
	var left int
	if err := db.Super().QueryRow(t.Context(), "select count(*) from pg_database where datname like 'waybill_bench%'").Scan(&left); err != nil || left > 0 {
		t.Errorf("%d databases stay: %v", left, err)
	}
}
