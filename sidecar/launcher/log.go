package main

import (
	"fmt"
	"sync"
	"syscall"
	"time"
)

const (
	// logBytes may wait for a log that is slow.
	logBytes = 1 << 20
	// stuckTime without any progress there makes the launcher drop instead of blocking the server.
	stuckTime = time.Second
)

// logWriter writes to a descriptor that may block for ever, without ever blocking its users for long: when the reader of
// the log does not read, output is dropped and counted.
type logWriter struct {
	fd      int
	mu      sync.Mutex
	changed sync.Cond
	pending []byte
	writing bool
	stuck   bool // nothing was taken for stuckTime
	dropped int
}

var containerLog = newLogWriter(syscall.Stderr)

func newLogWriter(fd int) *logWriter {
	w := &logWriter{fd: fd}
	w.changed.L = &w.mu
	go w.copy()
	return w
}

// logf writes one line of the launcher's own to the container's log.
func logf(format string, values ...any) {
	containerLog.add(fmt.Appendf(nil, "mcp-launcher: "+format+"\n", values...), 0)
}

// add queues output; if there is no room it waits, at most for the given time, then drops it.
func (w *logWriter) add(data []byte, patience time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	room := func() bool { return len(w.pending)+len(data) <= logBytes }
	if !room() && !w.stuck && patience > 0 {
		w.stuck = !w.wait(patience, room)
	}
	if !room() {
		w.dropped += len(data)
		return
	}
	w.pending = append(w.pending, data...)
	w.changed.Broadcast()
}

// copy is the goroutine that writes.
func (w *logWriter) copy() {
	var data []byte
	w.mu.Lock()
	for {
		for len(w.pending) == 0 {
			w.writing = false
			w.changed.Broadcast()
			w.changed.Wait()
		}
		data, w.pending = w.pending, data[:0]
		if w.dropped > 0 {
			data = fmt.Appendf(data, "\nmcp-launcher: dropped %d bytes of stderr: nobody read them\n", w.dropped)
		}
		w.writing, w.stuck, w.dropped = true, false, 0
		w.changed.Broadcast()
		w.mu.Unlock()
		writeAll(w.fd, data)
		w.mu.Lock()
	}
}

// flush waits shortly until everything is written.
func (w *logWriter) flush(patience time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait(patience, func() bool { return len(w.pending) == 0 && !w.writing })
}

// wait waits for a condition, with mu held, and says whether it came true in time.
func (w *logWriter) wait(patience time.Duration, done func() bool) bool {
	deadline := time.Now().Add(patience)
	wake := time.AfterFunc(patience, func() {
		w.mu.Lock()
		w.changed.Broadcast()
		w.mu.Unlock()
	})
	defer wake.Stop()
	for !done() {
		if !time.Now().Before(deadline) {
			return false
		}
		w.changed.Wait()
	}
	return true
}

// writeAll gives up on an error: a log that is gone must not disturb the server.
func writeAll(fd int, data []byte) {
	for len(data) > 0 {
		n, err := syscall.Write(fd, data)
		switch err {
		case nil:
			data = data[n:]
		case syscall.EINTR:
		case syscall.EAGAIN:
			time.Sleep(10 * time.Millisecond) // another owner of the descriptor made it non-blocking
		default:
			return
		}
	}
}
