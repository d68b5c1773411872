package main

import (
	"bytes"
	"math/rand"
	"testing"
	"time"
)

// TestLargeLineComesWholeAndItsMemoryGoes: more than the chunks that are kept, again and again.
func TestLargeLineComesWholeAndItsMemoryGoes(t *testing.T) {
	q := newQueue(64<<20, func(sink, error) {})
	out := &collector{}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out = out
	random := rand.New(rand.NewSource(1))
	for range 3 {
		line := make([]byte, 20<<20)
		_, _ = random.Read(line)
		line = append(bytes.ReplaceAll(line, []byte("\n"), []byte(" ")), '\n')
		out.Reset()
		for rest := line; len(rest) > 0; {
			n := min(len(rest), 1+random.Intn(100_000))
			q.extend(rest[:n])
			rest = rest[n:]
		}
		if len(q.slabs) != 3 {
			t.Fatalf("%d slabs for 20 MiB", len(q.slabs))
		}
		q.commit()
		q.flush()
		if !bytes.Equal(out.Bytes(), line) {
			t.Fatalf("got %d other bytes than the %d sent", out.Len(), len(line))
		}
	}
	if !q.trimTimer.Stop() {
		t.Fatal("nothing is going to give the memory back")
	}
	q.mu.Unlock()
	q.trimNow()
	q.mu.Lock()
	if len(q.slabs) != 0 || q.made != spareChunks || len(q.spare) != spareChunks {
		t.Errorf("left %d slabs, %d of %d chunks spare", len(q.slabs), len(q.spare), q.made)
	}
}

func TestMemoryInUseIsKeptAndReturnedLater(t *testing.T) {
	q := newQueue(64<<20, func(sink, error) {})
	q.mu.Lock()
	defer q.mu.Unlock()
	line := bytes.Repeat([]byte("x"), 2<<20)
	q.extend(line)
	q.mu.Unlock()
	q.trimNow()
	q.mu.Lock()
	if len(q.slabs) != 1 {
		t.Fatalf("%d slabs while a line is in one", len(q.slabs))
	}
	q.extend([]byte("\n"))
	q.commit()
	out := &collector{}
	q.out = out
	q.flush()
	if !bytes.Equal(out.Bytes(), append(line, '\n')) {
		t.Fatal("the line has changed")
	}
	if q.trimTimer == nil || !q.trimTimer.Reset(time.Hour) {
		t.Fatal("nothing is going to give the memory back")
	}
	q.mu.Unlock()
	q.trimNow()
	q.mu.Lock()
	if len(q.slabs) != 0 {
		t.Errorf("%d slabs are left", len(q.slabs))
	}
}

func TestLastNewlineIsFoundWhereverItIs(t *testing.T) {
	for size := range 3 * nearBytes {
		data := bytes.Repeat([]byte("x"), size)
		if got := lastNewline(data); got != -1 {
			t.Fatalf("%d bytes without one: %d", size, got)
		}
		for _, at := range []int{0, 1, size / 2, size - nearBytes, size - nearBytes - 1, size - 1} {
			if at < 0 || at >= size {
				continue
			}
			data[at] = '\n'
			if got, want := lastNewline(data), bytes.LastIndexByte(data, '\n'); got != want {
				t.Fatalf("%d bytes: %d, want %d", size, got, want)
			}
		}
	}
}
