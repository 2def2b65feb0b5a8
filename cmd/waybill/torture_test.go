package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"waybill/handlers/worker"
)

// TestTorture runs the product through a short torture under a few seeds. By hand:
// go run ./cmd/waybill torture --seconds 300.
func TestTorture(t *testing.T) {
	t.Parallel()
	for _, seed := range []int{1, 2} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			torture(t, seed)
		})
	}
}

func torture(t *testing.T, seed int) {
	t.Helper()
	cmd := exec.Command("waybill", "torture", "--json", "--seconds", "9", "--seed", fmt.Sprint(seed))
	cmd.Env = withoutOurs(cmd.Environ())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("seed %d: %v: %s\n%s", seed, err, &stderr, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var rep tortureReport
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &rep); err != nil {
		t.Fatal(err)
	}
	c := rep.Checked
	t.Logf("seed %d: %d deliveries, %d events, %d arrivals, %d claims in doubt; %v", seed, c.Deliveries, c.Events, c.Arrivals, c.Expired, rep.Faults)
	// A run that nothing befell proves nothing.
	if rep.Faults[mishapDatabase] == 0 || rep.Faults[mishapStop]+rep.Faults[mishapCutOff] == 0 || c.Expired == 0 || c.Deliveries < 20 || c.Deliveries != rep.Submitted {
		t.Errorf("seed %d: this is no torture: %s", seed, lines[len(lines)-1])
	}
}

// TestPlanIsTheSeeds: the same seed, the same faults; and every kind in a minute.
func TestPlanIsTheSeeds(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	plan := planMishaps(7, minute, 3)
	if !reflect.DeepEqual(plan, planMishaps(7, minute, 3)) || reflect.DeepEqual(plan, planMishaps(8, minute, 3)) {
		t.Error("the plan is not the seed's")
	}
	seen := map[string]int{}
	for i, m := range plan {
		seen[m.Kind]++
		if m.At >= minute || i > 0 && m.At < plan[i-1].At {
			t.Errorf("%+v is out of order", m)
		}
		for _, n := range m.Whom {
			if n < 0 || n > 3 {
				t.Errorf("%+v befalls nobody", m)
			}
		}
	}
	for _, kind := range append([]string{mishapStop, mishapCutOff}, deck...) {
		if seen[kind] == 0 {
			t.Errorf("no %s", kind)
		}
	}
	points := map[string]bool{}
	for life := range 100 {
		if c, ok := planCrashes(7, 1, life); ok {
			points[c.point] = true
		}
	}
	if len(points) != 4 {
		t.Errorf("crashes at %v only", points)
	}
}

// TestCrashHook: nobody kills himself unless he is told where, and then only there.
func TestCrashHook(t *testing.T) {
	if hook, err := crashHook(nil); hook != nil || err != nil {
		t.Errorf("without the variable: %v", err)
	}
	for _, bad := range []string{"claimed", "claimed:x:1", "claimed:1:x", "claimed:1:1:1"} {
		t.Setenv(crashVariable, bad)
		if _, err := crashHook(nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	c, err := parseCrashes(crashes{worker.AtClaimed, 1, 9}.String())
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	died := 0
	hook := c.hook(&said, func() { died++ })
	if hook(worker.AtSending); died != 0 {
		t.Error("died at another point")
	}
	if hook(worker.AtClaimed); died != 1 || said.String() != crashSaid+worker.AtClaimed+"\n" {
		t.Errorf("died %d times and said %q", died, &said)
	}
}
