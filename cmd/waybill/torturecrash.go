package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"waybill/handlers/worker"
)

// crashVariable makes a worker kill itself, for `waybill torture` alone:
// POINT:PROBABILITY:SEED, the point being one of package worker's. It is no setting of
// the product.
const crashVariable = "WAYBILL_TORTURE_CRASH"

// crashSaid is what a process says on standard error before it kills itself.
const crashSaid = "torture: kill -9 of myself at "

// insideCommit is how late after the results are sent to the ledger the process dies
// at most, so that it happens before, in or after their commit.
const insideCommit = 2 * time.Millisecond

// crashes is where a process kills itself, and how likely it is each time.
type crashes struct {
	point       string
	probability float64
	seed        uint64
}

// String is the variable's value.
func (c crashes) String() string {
	return fmt.Sprintf("%s:%g:%d", c.point, c.probability, c.seed)
}

func parseCrashes(text string) (c crashes, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return c, usagef("%s is not POINT:PROBABILITY:SEED", crashVariable)
	}
	c.point = parts[0]
	if c.probability, err = strconv.ParseFloat(parts[1], 64); err != nil {
		return c, usagef("%s: %s", crashVariable, err)
	}
	if c.seed, err = strconv.ParseUint(parts[2], 10, 64); err != nil {
		return c, usagef("%s: %s", crashVariable, err)
	}
	return c, nil
}

// crashHook is what a worker calls at its points; nil unless torture started this
// process.
func crashHook(to io.Writer) (func(point string), error) {
	text := os.Getenv(crashVariable)
	if text == "" {
		return nil, nil
	}
	c, err := parseCrashes(text)
	if err != nil {
		return nil, err
	}
	return c.hook(to, killMyself), nil
}

// hook dies at the point once its dice say so.
func (c crashes) hook(to io.Writer, die func()) func(point string) {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(c.seed, 0))
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if point != c.point || dice.Float64() >= c.probability {
			return
		}
		_, _ = fmt.Fprintln(to, crashSaid+point)
		if point == worker.AtRecording {
			time.AfterFunc(time.Duration(dice.Int64N(int64(insideCommit))), die)
			return
		}
		die()
	}
}

// killMyself is kill -9: no deferred call runs, no buffer is written.
func killMyself() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
