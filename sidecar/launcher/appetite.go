package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

const (
	// A process is looked at about ten times a second, and more often the nearer it is to its limit: growth is the rate,
	// in bytes a second, at which one is expected to fill what is left.
	lookSeldom = 100 * time.Millisecond
	lookOften  = 10 * time.Millisecond
	lookTwice  = 2 * time.Millisecond // above the limit: to be sure of it
	// Of a CPU, looking takes the twentieth part at most: memory that many processes share is counted page by page.
	restPerCost = 19
	restAtMost  = 2 * time.Second
	growth      = 2 << 30

	// overLimit tells a launcher that its server exceeds its memory limit. It is a real-time signal that neither Go nor
	// the C libraries use for themselves.
	overLimit = syscall.Signal(40)
)

// processFacts are what is known of one process.
type processFacts struct {
	pid, parent int
	held        int64    // bytes that it allocated, or maps of shared memory
	shape       [2]int64 // KiB of addresses, and of mapped files that are in memory
	root        int      // of the roots asked for, the one that it descends from; 0: none
	twin        bool     // its memory is its parent's
}

// relate finds out which root each process descends from, and whose memory is its parent's; it sorts the processes.
//
// Processes like their parents to the byte are taken to share all memory: between vfork and exec, the usual way to start
// another program, they do, and after a fork until one of the two writes.
func relate(facts []processFacts, roots []int) {
	slices.SortFunc(facts, func(a, b processFacts) int { return a.pid - b.pid })
	parent := func(one processFacts) (processFacts, bool) {
		at, found := slices.BinarySearchFunc(facts, one.parent, func(other processFacts, pid int) int { return other.pid - pid })
		if !found {
			return processFacts{}, false
		}
		return facts[at], true
	}
	for i, one := range facts {
		above, known := parent(one)
		facts[i].twin = known && one.held == above.held && one.shape == above.shape
		// What is read while processes come and go may hold a circle: no line of ancestors is longer than all of them.
		for steps := 0; one.parent != 0 && steps < len(facts); steps++ {
			if slices.Contains(roots, one.parent) {
				facts[i].root = one.parent
				break
			}
			if one, known = parent(one); !known {
				break
			}
		}
	}
}

// weigh sums what the descendants of each root hold, in bytes, as size tells it of each process.
func weigh(facts []processFacts, roots []int, size func(processFacts) int64) map[int]int64 {
	held := make(map[int]int64, len(roots))
	for _, root := range roots {
		held[root] = 0
	}
	for _, one := range facts {
		if _, wanted := held[one.root]; wanted && !one.twin {
			held[one.root] += size(one)
		}
	}
	return held
}

// confirmed are those that exceeded the limit at the look before, too: one look can meet a process that starts another one.
func confirmed(over, before []int) []int {
	return slices.DeleteFunc(slices.Clone(over), func(root int) bool { return !slices.Contains(before, root) })
}

// judge tells which roots exceed the limit, in order, and how long the others need not be looked at.
func judge(held map[int]int64, limit int64) (over []int, pause time.Duration) {
	pause = lookSeldom
	for root, bytes := range held {
		if bytes > limit {
			over = append(over, root)
		}
		left := float64(limit-bytes) / growth // seconds; in whole nanoseconds a large limit would overflow
		pause = min(pause, max(lookOften, time.Duration(min(left, 1)*float64(time.Second))))
	}
	if len(over) > 0 {
		pause = lookTwice
	}
	slices.Sort(over)
	return over, pause
}

// rest is how long nobody is looked at after a look that took so much of a CPU.
func rest(pause, cost time.Duration) time.Duration {
	return max(pause, min(restPerCost*cost, restAtMost))
}

// overMemory describes the end of a server that exceeded its limit in bytes.
func overMemory(facts exitFacts, limit int64) exitFacts {
	if facts.Signal != nil && *facts.Signal == signalName(syscall.SIGKILL) {
		facts.Reason = reasonMemoryLimit
		facts.Message = "the process was killed because it used more than its memory limit of " + quantity(limit)
	}
	return facts
}

// quantity writes bytes as Kubernetes does: with the largest suffix that leaves a whole number.
func quantity(bytes int64) string {
	suffix := ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if bytes == 0 || bytes%1024 != 0 {
			break
		}
		bytes, suffix = bytes/1024, next
	}
	return fmt.Sprint(bytes, suffix)
}
