package main

import (
	"sync/atomic"
	"syscall"
	"time"
)

// guard looks at what the processes of launchers hold, on a thread of its own choice: at rest the main one is not woken.
type guard struct {
	limit    int64
	census   *census
	roots    atomic.Value // []int: pids of the launchers
	excesses chan int     // of those whose processes exceed the limit
}

func newGuard(limit int64) (*guard, error) {
	census, err := newCensus()
	return &guard{limit: limit, census: census, excesses: make(chan int)}, err
}

// run looks as long as the program runs.
func (g *guard) run() {
	var before []int
	pause := lookSeldom
	for {
		time.Sleep(pause)
		roots, _ := g.roots.Load().([]int) // none before the first is known
		began := cpuTime()
		var over []int
		over, pause = judge(g.census.measure(roots, g.limit), g.limit)
		if len(over) == 0 {
			pause = rest(pause, cpuTime()-began)
		}
		for _, pid := range confirmed(over, before) {
			g.excesses <- pid
		}
		before = over
	}
}

// cpuTime is what this process has used of a CPU; the time of day would also tell how long others had it.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // never: the address is good
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
