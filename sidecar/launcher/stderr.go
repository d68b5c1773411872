package main

import (
	"bytes"
	"strings"
	"sync"
	"syscall"
	"time"
)

// windowBytes of stderr are kept beyond the longest secret: enough for the tail when much of it is terminal codes.
const windowBytes = 16 << 10

// lineBytes of the last line are told as progress.
const lineBytes = 512

// tail keeps the end of a stream.
type tail struct {
	limit int
	kept  []byte
	cut   bool // something is missing at the start
}

func (t *tail) add(p []byte) {
	t.kept = append(t.kept, p...)
	// Cut only at twice the limit, so that each byte is moved once.
	if len(t.kept) > 2*t.limit {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-t.limit:]...)
		t.cut = true
	}
}

// text gives the end of the stream as masked text of at most tailBytes.
func (t *tail) text(m *masker) string {
	skip := 0
	if t.cut {
		skip = 2 * m.longest() // with line ends in it
	}
	return lastBytes(m.mask(cleanText(t.kept), skip), tailBytes)
}

// lastLine gives the last line with something in it, masked; it may still be in the writing.
func (t *tail) lastLine(m *masker) string {
	whole := bytes.TrimRight(t.kept, "\r\n")
	skip := 0
	if t.cut {
		skip = 2 * m.longest()
	}
	text := m.mask(cleanText(wholeRunes(whole)), skip)
	if len(whole) == len(t.kept) {
		text = m.maskBeginning(text)
	}
	text = strings.TrimSpace(text)
	return firstBytes(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), lineBytes)
}

// stderrPump drains the server's stderr, whatever happens: to the container's log, and to the tail.
type stderrPump struct {
	masker *masker
	ended  chan struct{}

	mu   sync.Mutex
	tail tail
}

func newStderrPump(m *masker) *stderrPump {
	return &stderrPump{masker: m, ended: make(chan struct{}), tail: tail{limit: windowBytes + 2*m.longest()}}
}

// run reads until the stream ends.
func (p *stderrPump) run(fd int, log *logWriter) {
	defer close(p.ended)
	buffer := make([]byte, 32<<10)
	for {
		n, err := syscall.Read(fd, buffer)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		p.mu.Lock()
		p.tail.add(buffer[:n])
		p.mu.Unlock()
		log.add(buffer[:n], stuckTime)
	}
}

// finish waits shortly for the last bytes and gives the masked tail.
func (p *stderrPump) finish(patience time.Duration) string {
	select {
	case <-p.ended:
	case <-time.After(patience):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tail.text(p.masker)
}

// lastLine gives what the server wrote last, masked.
func (p *stderrPump) lastLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tail.lastLine(p.masker)
}
