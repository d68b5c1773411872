package main

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// maxStdinBytes of whole lines are taken from the relay ahead of a server that does not read.
const maxStdinBytes = 4 << 20

// stdin forwards whole lines of the current relay to the server.
type stdin struct {
	queue  *queue
	pipe   *pipeSink
	framer framer
	owner  *conn // whose lines are forwarded; guarded by queue.mu
	closed bool  // the server reads no more: lines are discarded; guarded by queue.mu
}

// newStdin takes the writing end of the pipe. onClosed is called if the server closes its end, with
// the queue locked: it must not wait.
func newStdin(fd, maxLineBytes int, control func([]byte), onClosed func()) (*stdin, error) {
	pipe, err := newPipeSink(fd)
	if err != nil {
		return nil, err
	}
	s := &stdin{pipe: pipe}
	s.queue = newQueue(maxStdinBytes, func(_ sink, err error) {
		s.closed = true
		s.queue.discard()
		if !errors.Is(err, os.ErrClosed) {
			onClosed()
		}
	})
	s.queue.out = pipe
	s.framer = framer{q: s.queue, max: maxLineBytes, control: control, oversized: func(line droppedLine) {
		logf("dropped a line of %d bytes to the server: the limit is %d", line.length, maxLineBytes)
	}}
	return s, nil
}

// adopt makes a connection the only one whose lines count; what another began and did not finish is forgotten. It tells
// how many lines came before.
func (s *stdin) adopt(c *conn) int64 {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.owner = c
	s.framer.reset()
	s.queue.changed.Broadcast()
	return s.framer.lines
}

// feed takes bytes of a connection, and waits while too much is queued.
func (s *stdin) feed(c *conn, p []byte) {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.owner != c {
		return
	}
	s.framer.feed(p)
	q.flush()
	if s.closed {
		q.discard()
	}
	for s.owner == c && !q.hasRoom() && !s.closed {
		q.changed.Wait()
	}
}

// close ends the server's stdin once what is queued has been written, or after the given time.
func (s *stdin) close(patience time.Duration) {
	s.queue.waitUntil(time.Now().Add(patience), s.queue.empty)
	s.pipe.interrupt()
}

// pipeSink writes to a pipe. It goes through os.File, whose Close can end a write that waits.
type pipeSink struct {
	file *os.File
	raw  syscall.RawConn
	// Arguments and result of attempt; fields, so that a write allocates nothing. One write is under way at a time.
	data []byte
	n    int
	err  error
	try  func(fd uintptr) bool
}

func newPipeSink(fd int) (*pipeSink, error) {
	file, err := pipeEnd(fd, "stdin of the server")
	if err != nil {
		return nil, err
	}
	s := &pipeSink{file: file}
	raw, err := s.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	s.raw = raw
	s.try = s.attempt
	return s, nil
}

func (s *pipeSink) attempt(fd uintptr) bool {
	s.n, s.err = rawIO(syscall.SYS_WRITE, fd, s.data)
	return true
}

func (s *pipeSink) write(p []byte, wait bool) (int, error) {
	if wait {
		return s.file.Write(p)
	}
	s.data = p
	if err := s.raw.Write(s.try); err != nil {
		return 0, err
	}
	return s.n, s.err
}

func (s *pipeSink) interrupt() {
	if err := s.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		logf("close the server's stdin: %v", err)
	}
}
