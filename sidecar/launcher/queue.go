package main

import (
	"bytes"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	chunkBytes = 64 << 10
	// spareChunks are kept for reuse for ever; a queue that needed more gives the others back to the system when it has
	// not been that large again for trimDelay.
	spareChunks = 16
	trimDelay   = 2 * time.Second
	// nearBytes before the end of what was sent its last newline is looked for at first.
	nearBytes = 512
)

// sink takes the bytes of a queue.
type sink interface {
	// write sends some of p; with wait false it never blocks and answers syscall.EAGAIN instead.
	write(p []byte, wait bool) (int, error)
	// interrupt makes a write that waits return soon, and all later ones fail.
	interrupt()
}

// control is a line that does not come from the peer; it goes out just before the byte at offset at, a line's start.
type control struct {
	at       int64
	data     []byte
	greeting bool // belongs to one connection, is not carried over to the next
}

// queue holds lines until a sink has taken them, in memory that is bounded by its users through hasRoom.
//
// Positions are offsets in the stream of all bytes that ever passed:
//
//	acked <= sent <= committed <= end
//
// Below acked everything is forgotten: whole lines that a sink took. Up to sent, bytes are with the current sink. From
// committed to end lies the line that is still incomplete. A new sink starts again at acked, so no line is ever torn.
//
// Whoever adds lines also sends them (flush), without a change of goroutine; only when the sink would block does the
// goroutine in sendBlocked take over.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // any change below
	stalled sync.Cond // blocked came true; apart, so that a flush that goes through wakes nobody

	limit                       int64 // bytes held, see hasRoom
	base                        int64 // offset of the first byte of chunks[0]
	acked, sent, committed, end int64
	chunks, spare               [][]byte
	made                        int // chunks on the heap, in use or spare
	slabs                       slabs
	controls                    []control
	controlBytes, controlSent   int // total; how much of controls[0] is with the current sink
	out                         sink
	onBroken                    func(sink, error) // called with mu held, after out became nil
	busy, blocked, switching    bool
	trimWanted                  bool
	trimTimer                   *time.Timer
}

func newQueue(limit int, onBroken func(sink, error)) *queue {
	q := &queue{limit: int64(limit), onBroken: onBroken}
	q.changed.L = &q.mu
	q.stalled.L = &q.mu
	go q.sendBlocked()
	return q
}

// extend adds bytes to the incomplete line at the end. The caller holds mu.
func (q *queue) extend(p []byte) {
	for len(p) > 0 {
		last := len(q.chunks) - 1
		if last < 0 || len(q.chunks[last]) == chunkBytes {
			q.chunks = append(q.chunks, q.takeChunk())
			last++
		}
		room := min(len(p), chunkBytes-len(q.chunks[last]))
		q.chunks[last] = append(q.chunks[last], p[:room]...)
		q.end += int64(room)
		p = p[room:]
	}
}

// commit makes everything added so far ready to be sent; the last byte must be a newline. The caller holds mu.
func (q *queue) commit() {
	q.committed = q.end
}

// abandon forgets the incomplete line. The caller holds mu.
func (q *queue) abandon() {
	q.end = q.committed
	q.trimTail()
}

// discard forgets all whole lines. The caller holds mu; there is no sink.
func (q *queue) discard() {
	q.acked, q.sent = q.committed, q.committed
	q.controls, q.controlBytes = nil, 0
	q.release()
}

// addControl adds a control line after the last whole line, before an incomplete one. The caller holds mu.
func (q *queue) addControl(line []byte) {
	q.controls = append(q.controls, control{at: q.committed, data: line})
	q.controlBytes += len(line)
}

// incomplete copies bytes of the incomplete line, at most limit, from an offset or the line's start. The caller holds mu.
func (q *queue) incomplete(from int64, limit int) []byte {
	var part []byte
	from = max(from, q.committed)
	for at := from; at < q.end && len(part) < limit; at = from + int64(len(part)) {
		part = append(part, q.at(at, q.end)...)
	}
	return part[:min(len(part), limit)]
}

// hasRoom says whether more may be added: below the limit, or when the incomplete line is all there is (the framer
// bounds that). The caller holds mu.
func (q *queue) hasRoom() bool {
	return q.end-q.acked+int64(q.controlBytes) < q.limit || q.empty()
}

// empty says whether everything complete has been handed to a sink. The caller holds mu.
func (q *queue) empty() bool {
	return q.acked == q.committed && len(q.controls) == 0
}

// at gives the bytes at an offset, up to end at most and to the end of their chunk.
func (q *queue) at(offset, end int64) []byte {
	i := int(offset-q.base) / chunkBytes
	start := q.base + int64(i)*chunkBytes
	return q.chunks[i][offset-start : min(end-start, int64(len(q.chunks[i])))]
}

// next gives the bytes to send now, nil if there are none.
func (q *queue) next() (data []byte, isControl bool) {
	stop := q.committed
	if len(q.controls) > 0 {
		if q.controls[0].at == q.sent {
			return q.controls[0].data[q.controlSent:], true
		}
		stop = q.controls[0].at
	}
	if q.sent == stop {
		return nil, false
	}
	return q.at(q.sent, stop), false
}

// advance accounts for data taken by the current sink.
func (q *queue) advance(data []byte, isControl bool) {
	if isControl {
		q.controlSent += len(data)
		if q.controlSent == len(q.controls[0].data) {
			q.dropControl(0)
			q.controlSent = 0
		}
		return
	}
	if i := lastNewline(data); i >= 0 {
		q.acked = q.sent + int64(i) + 1
	}
	q.sent += int64(len(data))
	q.release()
}

// lastNewline gives the index of the last newline, -1 if there is none. It is near the end or, within a long line, nowhere:
// bytes.LastIndexByte goes back byte by byte, which took longer for a long line than all its copies; IndexByte takes 32 at
// a time.
func lastNewline(data []byte) int {
	near := max(0, len(data)-nearBytes)
	if i := bytes.LastIndexByte(data[near:], '\n'); i >= 0 {
		return near + i
	}
	if bytes.IndexByte(data[:near], '\n') < 0 {
		return -1
	}
	return bytes.LastIndexByte(data[:near], '\n')
}

func (q *queue) dropControl(i int) {
	q.controlBytes -= len(q.controls[i].data)
	q.controls = slices.Delete(q.controls, i, i+1)
}

// pump sends until nothing is left, the sink breaks or, with wait false, would block. The caller holds mu.
func (q *queue) pump(wait bool) {
	for q.out != nil && !q.switching {
		data, isControl := q.next()
		if data == nil {
			return
		}
		out := q.out
		q.mu.Unlock()
		n, err := out.write(data, wait)
		q.mu.Lock()
		q.advance(data[:max(n, 0)], isControl)
		if wait {
			q.changed.Broadcast() // room, progress
		}
		if err == syscall.EAGAIN {
			q.blocked = true
			return
		}
		if err != nil {
			q.unplug()
			q.onBroken(out, err)
		}
	}
}

// flush sends what can be sent without waiting and leaves the rest to sendBlocked. The caller holds mu.
func (q *queue) flush() {
	if q.busy {
		return
	}
	q.busy = true
	q.pump(false)
	if q.blocked {
		q.stalled.Signal()
	} else {
		q.busy = false
	}
	q.changed.Broadcast()
}

// sendBlocked takes over whenever a sink would block.
func (q *queue) sendBlocked() {
	q.mu.Lock()
	for {
		for !q.blocked {
			q.stalled.Wait()
		}
		q.pump(true)
		q.blocked, q.busy = false, false
		q.changed.Broadcast()
	}
}

// plug makes out the sink, in place of the one before; greetings are control lines that it gets first.
func (q *queue) plug(out sink, greetings ...[]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.quiesce()
	q.unplug()
	first := make([]control, 0, len(greetings)+len(q.controls))
	for _, line := range greetings {
		first = append(first, control{at: q.acked, data: line, greeting: true})
		q.controlBytes += len(line)
	}
	q.controls = append(first, q.controls...)
	q.out = out
	q.flush()
}

// unplugIf takes a sink away if it is the current one; afterwards no write to it is under way.
func (q *queue) unplugIf(out sink) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.out == out {
		q.quiesce()
	}
	if q.out == out {
		q.unplug()
	}
	q.changed.Broadcast()
}

// quiesce interrupts the current sink and waits for the end of a write to it. The caller holds mu.
func (q *queue) quiesce() {
	if q.out == nil {
		return
	}
	q.switching = true
	q.out.interrupt()
	for q.busy {
		q.changed.Wait()
	}
	q.switching = false
}

// unplug forgets the sink and what it did not take as whole lines. The caller holds mu; no write is under way.
func (q *queue) unplug() {
	q.out = nil
	q.sent = q.acked
	q.controlSent = 0
	for i := len(q.controls) - 1; i >= 0; i-- {
		if q.controls[i].greeting {
			q.dropControl(i)
		}
	}
}

// waitUntil waits for a condition, evaluated with mu held, and says whether it came true before the deadline.
func (q *queue) waitUntil(deadline time.Time, done func() bool) bool {
	wake := time.AfterFunc(time.Until(deadline), func() {
		q.mu.Lock()
		q.changed.Broadcast()
		q.mu.Unlock()
	})
	defer wake.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for !done() {
		if !time.Now().Before(deadline) {
			return false
		}
		q.changed.Wait()
	}
	return true
}
