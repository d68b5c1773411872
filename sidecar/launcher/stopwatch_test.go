package main

import (
	"sync"
	"testing"
	"time"
)

const (
	tick  = 10 * time.Millisecond
	stall = 100 * time.Millisecond
)

// ticking knows how long the machine did not run the tests: what they time stood still as well.
var ticking struct {
	sync.Mutex
	last time.Time
	lost time.Duration
}

// keepTicking looks at the clock for ever.
func keepTicking() {
	for {
		lostUntilNow()
		time.Sleep(tick)
	}
}

// lostUntilNow tells for how long in all the tests were not run.
func lostUntilNow() time.Duration {
	ticking.Lock()
	defer ticking.Unlock()
	now := time.Now()
	if late := now.Sub(ticking.last) - tick; late > stall && !ticking.last.IsZero() {
		ticking.lost += late
	}
	ticking.last = now
	return ticking.lost
}

// stopwatch measures what a test must not wait for, without the time in which nothing ran.
type stopwatch struct {
	start time.Time
	lost  time.Duration
}

func startWatch() stopwatch {
	lost := lostUntilNow()
	return stopwatch{time.Now(), lost}
}

func (w stopwatch) took() time.Duration {
	lost := lostUntilNow() - w.lost
	return time.Since(w.start) - lost
}

func TestTimeInWhichNothingRanIsNotCounted(t *testing.T) {
	watch := startWatch() // not in parallel: the others' watches stand still meanwhile
	ticking.Lock()        // as long as this test has it, nobody sees the clock
	time.Sleep(3 * stall)
	ticking.Unlock()
	if took := watch.took(); took > 2*stall {
		t.Errorf("took %v", took)
	}
}
