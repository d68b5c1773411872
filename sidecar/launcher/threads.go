package main

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

const schedBatch = 3 // SCHED_BATCH of <sched.h>

// letOthersFinish has the threads of this process not interrupt whoever wakes them on the same core. The server and the
// relay write one line after the other, and an ordinary thread that waits for the first one takes the core away from
// them for every single line: with many calls under way that was most of what the launcher cost (13 of 16 µs a call),
// and half of it was paid by the other two. So they finish, and all their lines are taken at once. On a core that has
// nothing else to do nothing changes.
//
// The calling thread is left out. It must be the main thread, which forwards nothing but starts the server, and a
// process inherits this. New threads get it from those that have it: the runtime does not start threads from one that
// is locked to its goroutine.
func letOthersFinish() {
	main := syscall.Gettid()
	for done := map[int]bool{main: true}; ; {
		before := len(done)
		for _, tid := range threads() {
			if !done[tid] {
				done[tid] = true
				setPolicy(tid, schedBatch)
			}
		}
		if len(done) == before { // none was started meanwhile
			return
		}
	}
}

// threads lists the threads of this process.
func threads() []int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		logf("list threads: %v", err)
	}
	var found []int
	for _, entry := range entries {
		if tid, err := strconv.Atoi(entry.Name()); err == nil {
			found = append(found, tid)
		}
	}
	return found
}

// setPolicy sets how a thread is scheduled. A sandbox may forbid it and a thread may be gone: neither matters.
func setPolicy(tid, policy int) {
	var priority int32 // the only one that the policies without real time have
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(policy), uintptr(unsafe.Pointer(&priority)))
}
