package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progressSays is how often long work says how far it is where there is no terminal.
const progressSays = 5 * time.Second

// progress shows on standard error how far long work is: a bar on a terminal, a line every
// few seconds elsewhere. Add may be called from anywhere; phase and end by whoever began it.
type progress struct {
	to    io.Writer
	what  string // counted: "events", "rows"
	bars  *mpb.Progress
	bar   *mpb.Bar
	name  string
	total int64
	done  atomic.Int64
	began time.Time
	stop  chan struct{}
	work  sync.WaitGroup
}

// progress begins to show work that counts what.
func (in *invocation) progress(what string) *progress {
	p := &progress{to: in.err, what: what}
	if f, ok := in.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bars = mpb.New(mpb.WithOutput(f), mpb.WithAutoRefresh(), mpb.WithWidth(40))
	}
	return p
}

// phase ends the phase before and begins one of total steps (0: nobody knows how many).
func (p *progress) phase(name string, total int64) {
	p.finish()
	p.name, p.total, p.began, p.stop = name, total, time.Now(), make(chan struct{})
	p.done.Store(0)
	if p.bars != nil {
		p.bar = p.bars.AddBar(max(total, 1),
			mpb.PrependDecorators(decor.Name(name+" ", decor.WCSyncSpaceR), decor.CountersNoUnit("%d / %d "+p.what, decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace), "")))
		return
	}
	stop := p.stop // finish may be done with it before the goroutine has begun
	p.work.Go(func() { p.lines(stop) })
}

// add counts steps done.
func (p *progress) add(n int64) {
	done := p.done.Add(n)
	if p.bar == nil {
		return
	}
	if done > p.total { // more came while it worked
		p.bar.SetTotal(done+1, false)
	}
	p.bar.SetCurrent(done)
}

// end shows the last phase as over.
func (p *progress) end() {
	p.finish()
	if p.bars != nil {
		p.bars.Wait()
	}
}

func (p *progress) finish() {
	if p.stop == nil {
		return
	}
	close(p.stop)
	p.stop = nil
	p.work.Wait()
	if p.bar != nil {
		p.bar.SetTotal(-1, true)
		p.bar = nil
	}
}

func (p *progress) lines(stop <-chan struct{}) {
	tick := time.NewTicker(progressSays)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			_, _ = fmt.Fprintln(p.to, p.line(now))
		}
	}
}

func (p *progress) line(now time.Time) string {
	done, seconds := p.done.Load(), max(now.Sub(p.began).Seconds(), 0.001)
	if p.total <= 0 {
		return fmt.Sprintf("%s: %d %s, %.0f a second", p.name, done, p.what, float64(done)/seconds)
	}
	return fmt.Sprintf("%s: %d of %d %s, %.0f a second", p.name, done, max(p.total, done), p.what, float64(done)/seconds)
}
