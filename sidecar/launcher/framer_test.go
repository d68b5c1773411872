package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// collector is a sink that takes everything, or what its budget allows.
type collector struct {
	bytes.Buffer
}

func (c *collector) write(p []byte, _ bool) (int, error) { return c.Write(p) }
func (c *collector) interrupt()                          {}

// frame runs a stream through framer and queue, cut into pieces of the given sizes in turn.
func frame(stream []byte, limit int, sizes []byte, ended bool) string {
	q := newQueue(1<<30, func(sink, error) {})
	out := &collector{}
	f := framer{q: q, max: limit, oversized: func(line droppedLine) {
		q.addControl(fmt.Appendf(nil, "<%d %s %s>\n", line.length, line.head, line.tail))
	}}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := 0; len(stream) > 0; i++ {
		n := len(stream)
		if len(sizes) > 0 {
			n = min(n, 1+int(sizes[i%len(sizes)]))
		}
		f.feed(stream[:n])
		stream = stream[n:]
		if i == 2 { // a sink that comes late
			q.out = out
		}
		q.flush()
	}
	if ended {
		f.finish()
	}
	q.out = out
	q.flush()
	return out.String()
}

// reference does the same in the simplest way.
func reference(stream []byte, limit int, ended bool) string {
	var out strings.Builder
	lines := strings.SplitAfter(string(stream), "\n")
	for i, line := range lines {
		text := strings.TrimLeft(strings.TrimSuffix(line, "\n"), "\x00")
		if i == len(lines)-1 && (!ended || text == "") {
			break
		}
		if len(text) > limit {
			head, tail := characters([]byte(text[:limit]), headCharacters), lastCharacters([]byte(text), tailCharacters)
			fmt.Fprintf(&out, "<%d %s %s>\n", len(text), head, tail)
			continue
		}
		out.WriteString(text + "\n")
	}
	return out.String()
}

func FuzzFramer(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n\x00\x00c\n\x00\nrest"), 16, []byte{}, true)
	f.Add([]byte("é€😀漢\n\xff\xfe\n"), 8, []byte{0}, true)
	f.Add([]byte(strings.Repeat("long ", 100)+"\nshort\n"+strings.Repeat("é", 100)), 10, []byte{6, 0, 3}, false)
	f.Add([]byte(strings.Repeat("0123456789\n", 30000)), 100, []byte{255, 7}, true)
	f.Add([]byte(strings.Repeat("x", 200000)+"\n"+strings.Repeat("y", 70000)+"\n"), 1<<20, []byte{255}, true)
	f.Add([]byte(strings.Repeat("😀é漢x", 500)+"\n"+strings.Repeat("\xf0\x9f", 700)), 900, []byte{0, 255, 3}, true)
	f.Add([]byte("\x00\x00\x00\x00"), 1, []byte{0}, true)
	f.Add([]byte("\n\n\n"), 1, []byte{0}, false)
	f.Fuzz(func(t *testing.T, stream []byte, limit int, sizes []byte, ended bool) {
		limit = max(limit, 1)
		if got, want := frame(stream, limit, sizes, ended), reference(stream, limit, ended); got != want {
			t.Errorf("limit %d, pieces %v: got %.300q, want %.300q", limit, sizes, got, want)
		}
	})
}

func TestControlLinesAreDivertedFromTheStream(t *testing.T) {
	for _, size := range []byte{0, 1, 2, 200} {
		q := newQueue(1<<20, func(sink, error) {})
		out := &collector{}
		q.out = out
		var controls []string
		f := framer{q: q, max: 100, control: func(line []byte) { controls = append(controls, string(line)) }}
		q.mu.Lock()
		stream := []byte("one\n\x00{\"event\":\"drained\"}\ntwo\n\x00\nthree\x00\n\x00unfinished")
		for len(stream) > 0 {
			n := min(len(stream), 1+int(size))
			f.feed(stream[:n])
			stream = stream[n:]
		}
		f.reset()
		f.feed([]byte("four\n"))
		q.flush()
		q.mu.Unlock()
		if got := out.String(); got != "one\ntwo\nthree\x00\nfour\n" {
			t.Errorf("pieces of %d: lines %q", size+1, got)
		}
		if got := strings.Join(controls, "|"); got != `{"event":"drained"}|` {
			t.Errorf("pieces of %d: controls %q", size+1, got)
		}
	}
}
