package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// moody is a sink that takes a few bytes at a time, often would block, and breaks after a number of bytes.
type moody struct {
	mu     sync.Mutex
	random *rand.Rand
	budget int
	got    []byte
}

func (m *moody) write(p []byte, wait bool) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget == 0 {
		return 0, syscall.EPIPE
	}
	if !wait && m.random.Intn(4) == 0 {
		return 0, syscall.EAGAIN
	}
	n := min(1+m.random.Intn(len(p)), m.budget)
	m.got = append(m.got, p[:n]...)
	m.budget -= n
	return n, nil
}

func (m *moody) interrupt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget = 0
}

// TestQueueLosesAndTearsNothing sends lines through many sinks that break, or are replaced, at any byte. Together they
// must have got every line once; what each got after its last newline was torn and comes again.
func TestQueueLosesAndTearsNothing(t *testing.T) {
	for seed := range 30 {
		random := rand.New(rand.NewSource(int64(seed)))
		broken := make(chan struct{}, 1)
		q := newQueue(1<<20, func(sink, error) { notify(broken) })
		var want strings.Builder
		var sinks []*moody
		plug := func(budget int) {
			s := &moody{random: rand.New(rand.NewSource(random.Int63())), budget: budget}
			sinks = append(sinks, s)
			q.plug(s, []byte("\x00hello\n"))
		}
		for i := range 400 {
			line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", random.Intn(2000)))
			want.WriteString(line)
			q.mu.Lock()
			if random.Intn(10) == 0 {
				q.addControl([]byte(line))
			} else {
				q.extend([]byte(line[:len(line)/2]))
				q.flush()
				q.extend([]byte(line[len(line)/2:]))
				q.commit()
			}
			q.flush()
			q.mu.Unlock()
			if random.Intn(20) == 0 {
				plug(random.Intn(20000))
			}
		}
		plug(1 << 30)
		if !q.waitUntil(time.Now().Add(patience), q.empty) {
			t.Fatalf("seed %d: not everything is sent", seed)
		}
		var got strings.Builder
		for i, s := range sinks {
			s.mu.Lock()
			whole := s.got[:bytes.LastIndexByte(s.got, '\n')+1]
			rest, greeted := bytes.CutPrefix(whole, []byte("\x00hello\n"))
			if len(whole) > 0 && !greeted {
				t.Fatalf("seed %d, sink %d: no greeting in %.100q", seed, i, whole)
			}
			got.Write(rest)
			s.mu.Unlock()
		}
		if got.String() != want.String() {
			t.Fatalf("seed %d: got %d bytes, want %d", seed, got.Len(), want.Len())
		}
	}
}

func TestControlLineDoesNotTearAnIncompleteLine(t *testing.T) {
	q := newQueue(100, func(sink, error) {})
	out := &collector{}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out = out
	q.extend([]byte("first\nsec"))
	q.committed = 6
	q.addControl([]byte("\x00event\n"))
	q.flush()
	q.extend([]byte("ond\n"))
	q.commit()
	q.flush()
	if got := out.String(); got != "first\n\x00event\nsecond\n" {
		t.Errorf("got %q", got)
	}
}

func TestRoomIsWhatIsNotTakenYet(t *testing.T) {
	q := newQueue(10, func(sink, error) {})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.extend([]byte("a long incomplete line"))
	if !q.hasRoom() {
		t.Error("an incomplete line that is alone must be able to grow")
	}
	q.extend([]byte("\n"))
	q.commit()
	if q.hasRoom() {
		t.Error("no limit")
	}
	q.out = &collector{}
	q.flush()
	if !q.hasRoom() || !q.empty() {
		t.Error("what was taken still counts")
	}
}

func TestBrokenSinkIsReportedOnce(t *testing.T) {
	var reports []error
	q := newQueue(10, func(_ sink, err error) { reports = append(reports, err) })
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out = &moody{random: rand.New(rand.NewSource(1))}
	for range 3 {
		q.extend([]byte("x\n"))
		q.commit()
		q.flush()
	}
	if len(reports) != 1 || !errors.Is(reports[0], syscall.EPIPE) {
		t.Errorf("reports %v", reports)
	}
}
