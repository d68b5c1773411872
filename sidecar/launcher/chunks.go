package main

import (
	"slices"
	"time"
)

// takeChunk gives an empty chunk.
func (q *queue) takeChunk() []byte {
	if n := len(q.spare); n > 0 {
		chunk := q.spare[n-1]
		q.spare = slices.Delete(q.spare, n-1, n)
		return chunk
	}
	if q.made >= spareChunks {
		if chunk := q.slabs.take(); chunk != nil {
			q.trimWanted = true
			return chunk
		}
	}
	q.made++
	return make([]byte, 0, chunkBytes)
}

func (q *queue) giveChunk(chunk []byte) {
	if !q.slabs.give(chunk) {
		q.spare = append(q.spare, chunk[:0])
	}
}

// release gives back the chunks that hold nothing but forgotten bytes. (slices.Delete also clears what it cuts off: a
// reference left there would keep the memory.)
func (q *queue) release() {
	if q.acked == q.end {
		// Nothing is held: start again at the head of a chunk, so that quiet traffic stays in one chunk.
		for _, chunk := range q.chunks {
			q.giveChunk(chunk)
		}
		q.chunks = slices.Delete(q.chunks, 0, len(q.chunks))
		q.base = q.end
		q.trim()
		return
	}
	free := 0
	for q.acked >= q.base+chunkBytes && free < len(q.chunks)-1 {
		q.giveChunk(q.chunks[free])
		q.base += chunkBytes
		free++
	}
	if free > 0 {
		q.chunks = slices.Delete(q.chunks, 0, free)
	}
}

// trimTail gives back the chunks after end.
func (q *queue) trimTail() {
	for last := len(q.chunks) - 1; last >= 0; last-- {
		start := q.base + int64(last)*chunkBytes
		if start < q.end {
			q.chunks[last] = q.chunks[last][:q.end-start]
			break
		}
		q.giveChunk(q.chunks[last])
		q.chunks = slices.Delete(q.chunks, last, last+1)
	}
	if len(q.chunks) == 0 {
		q.base = q.end
		q.trim()
	}
}

// trim gives memory back to the system some time after the queue was large: the server pays for it in the same limit.
func (q *queue) trim() {
	if !q.trimWanted {
		return
	}
	q.trimWanted = false
	if q.trimTimer == nil {
		q.trimTimer = time.AfterFunc(trimDelay, q.trimNow)
	}
	q.trimTimer.Reset(trimDelay)
}

func (q *queue) trimNow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slabs.trim()
	q.trimWanted = len(q.slabs) > 0 // some of it is in use: when the queue is empty again
}
