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
	growth     = 2 << 30

	// overLimit tells a launcher that its server exceeds its memory limit. It is a real-time signal that neither Go nor
	// the C libraries use for themselves.
	overLimit = syscall.Signal(40)
)

// processFacts are what is known of one process.
type processFacts struct {
	pid, parent int
	held        int64    // bytes that it allocated, or maps of shared memory
	shape       [2]int64 // KiB of addresses, and of mapped files that are in memory
	twin        bool     // its memory is its parent's
}

// pair finds the processes that are like their parents to the byte, and takes their memory for the same: between vfork and
// exec, the usual way to start another program, it is, and after a fork it is shared until one of the two writes.
func pair(facts []processFacts) {
	known := make(map[int]processFacts, len(facts))
	for _, one := range facts {
		known[one.pid] = one
	}
	for i, one := range facts {
		parent, there := known[one.parent]
		if there && one.held == parent.held && one.shape == parent.shape {
			facts[i].twin = true
		}
	}
}

// families lists the descendants of each root.
func families(facts []processFacts, roots []int) map[int][]processFacts {
	parents := make(map[int]int, len(facts))
	for _, one := range facts {
		parents[one.pid] = one.parent
	}
	found := make(map[int][]processFacts, len(roots))
	for _, root := range roots {
		found[root] = nil
	}
	for _, one := range facts {
		// What is read while processes come and go may hold a circle: no line of ancestors is longer than all of them.
		ancestor := one.parent
		for steps := 0; ancestor != 0 && steps < len(facts); steps++ {
			if _, wanted := found[ancestor]; wanted {
				found[ancestor] = append(found[ancestor], one)
				break
			}
			ancestor = parents[ancestor]
		}
	}
	return found
}

// weigh sums what families hold, in bytes, as size tells it of each process.
func weigh(families map[int][]processFacts, size func(processFacts) int64) map[int]int64 {
	held := make(map[int]int64, len(families))
	for root, family := range families {
		held[root] = 0
		for _, one := range family {
			if !one.twin {
				held[root] += size(one)
			}
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
	slices.Sort(over)
	return over, pause
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
