package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	readBytes = 64 << 10
	// At the end the launcher waits for a relay as long as it reads something in every deliveryStall, up to deliveryLimit.
	deliveryStall = 200 * time.Millisecond
	deliveryLimit = 3 * time.Second
	// hangUpPatience is how long a relay may take to close its side when it has everything.
	hangUpPatience = 300 * time.Millisecond
	// The same with no relay there, when only the pipes have to run dry.
	unheardStall = 50 * time.Millisecond
)

// conn is the connection of one relay. Its descriptor does not block, and whoever waits for it waits in the runtime's
// poller: a blocking call would hold a processor that the runtime then takes away and gives back, every time.
type conn struct {
	fd     int
	file   *os.File // of fd
	reader *rawReader
}

func newConn(fd int) (*conn, error) {
	file := os.NewFile(uintptr(fd), "connection of the relay")
	reader, err := newRawReader(file)
	return &conn{fd, file, reader}, err
}

func (c *conn) write(p []byte, wait bool) (int, error) {
	if wait {
		return c.file.Write(p)
	}
	return rawIO(syscall.SYS_SENDTO, uintptr(c.fd), p)
}

func (c *conn) interrupt() {
	// Fails only if the peer is gone already, which is what is wanted.
	_ = syscall.Shutdown(c.fd, syscall.SHUT_RDWR)
}

// unread is the memory of what the peer has not read yet, 0 where the system does not tell.
func (c *conn) unread() int {
	var size int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(c.fd), syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0
	}
	return int(size)
}

// bridge serves the pipes of the server to one relay at a time.
type bridge struct {
	opts     options
	listener int
	hello    helloEvent
	stderr   *stderrPump
	out      *queue // to the relay
	stdin    *stdin
	framer   framer // of the server's stdout; guarded by out.mu

	drained chan struct{} // the relay says that no call is open any more
	gone    chan struct{} // a connection ended

	mu       sync.Mutex
	current  *conn
	standing [][]byte // events that every later relay is told, too
}

// listen opens the socket, accessible to the launcher's user and group. It gets its name when it can be connected to,
// so that a refused connection always means a launcher that has ended.
func listen(path string) (int, error) {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return -1, fmt.Errorf("remove the socket of an earlier run: %w", err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("create a socket: %w", err)
	}
	old := syscall.Umask(0o007)
	err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: fresh})
	syscall.Umask(old)
	if err == nil {
		err = syscall.Listen(fd, 16)
	}
	if err != nil {
		return -1, fmt.Errorf("listen on %s: %w", fresh, err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return -1, fmt.Errorf("listen on %s: there is a file that is no socket", path)
	}
	if err := os.Rename(fresh, path); err != nil {
		return -1, fmt.Errorf("name the socket: %w", err)
	}
	return fd, nil
}

func newBridge(opts options, listener int, stderr *stderrPump) *bridge {
	b := &bridge{opts: opts, listener: listener, stderr: stderr, drained: make(chan struct{}, 1), gone: make(chan struct{}, 1)}
	// A relay that is gone is noticed by the goroutine that reads from it.
	b.out = newQueue(opts.bufferBytes, func(out sink, _ error) { out.interrupt() })
	b.framer = framer{q: b.out, max: opts.maxLineBytes, oversized: func(line droppedLine) {
		logf("dropped a line of %d bytes from the server: the limit is %d", line.length, opts.maxLineBytes)
		b.out.addControl(controlLine(oversizedEvent{"oversized", line.length, line.head, line.tail}))
	}}
	return b
}

// serve accepts relays; the newest one replaces the one before.
func (b *bridge) serve() {
	for {
		if err := b.accept(); err != nil {
			logf("cannot accept a connection: %v", err)
			time.Sleep(100 * time.Millisecond) // out of descriptors or memory: both may pass
		}
	}
}

// accept takes one connection.
func (b *bridge) accept() error {
	fd, _, err := syscall.Accept4(b.listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
	switch err {
	case nil:
		c, err := newConn(fd)
		if err == nil {
			b.attach(c)
		}
		return err
	case syscall.EINTR, syscall.ECONNABORTED:
		return nil
	}
	return err
}

func (b *bridge) attach(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = c
	hello := b.hello
	hello.LinesTaken = b.stdin.adopt(c)
	b.out.plug(c, append([][]byte{controlLine(hello)}, b.standing...)...)
	go b.receive(c)
}

// receive forwards the lines of one connection to the server's stdin until it ends.
func (b *bridge) receive(c *conn) {
	buffer := make([]byte, readBytes)
	for {
		n, err := c.reader.Read(buffer)
		if err != nil || n <= 0 {
			break
		}
		b.stdin.feed(c, buffer[:n])
	}
	b.out.unplugIf(c)
	b.mu.Lock()
	if b.current == c {
		b.current = nil
		b.stdin.adopt(nil)
	}
	b.mu.Unlock()
	if err := c.file.Close(); err != nil {
		logf("close a connection: %v", err)
	}
	notify(b.gone)
}

// control handles a control line from the relay.
func (b *bridge) control(line []byte) {
	var event textsEvent
	if err := json.Unmarshal(line, &event); err != nil {
		logf("ignored a control line that is no JSON: %v", err)
		return
	}
	switch event.Event {
	case "drained":
		notify(b.drained)
	case "mask":
		for i, text := range event.Texts {
			event.Texts[i] = b.stderr.masker.maskCut(text)
		}
		b.announce(controlLine(textsEvent{"masked", event.ID, event.Texts}))
	case "progress":
		b.announce(controlLine(progressEvent{"progress", b.stderr.lastLine()}))
	}
}

// connected says whether a relay is there.
func (b *bridge) connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current != nil
}

// pump forwards the server's stdout until it ends; the channel is closed then.
func (b *bridge) pump(stdout io.Reader, done chan<- struct{}) {
	defer close(done)
	buffer := make([]byte, readBytes)
	for {
		n, err := stdout.Read(buffer)
		b.out.mu.Lock()
		if err != nil || n <= 0 {
			b.framer.finish()
		} else {
			b.framer.feed(buffer[:n])
		}
		b.out.flush()
		for !b.out.hasRoom() {
			b.out.changed.Wait()
		}
		b.out.mu.Unlock()
		if err != nil || n <= 0 {
			return
		}
	}
}

// announce sends an event, after the lines that are queued already.
func (b *bridge) announce(line []byte) {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	b.out.addControl(line)
	b.out.flush()
}

// declare sends an event to the relay and to every later one.
func (b *bridge) declare(event any) {
	line := controlLine(event)
	b.mu.Lock()
	b.standing = append(b.standing, line)
	b.mu.Unlock()
	b.announce(line)
}

// stdoutClosed tells that the server will say nothing any more: also in the greeting of every later relay, because what
// comes after the greeting comes after the relay's decision to go on with the session.
func (b *bridge) stdoutClosed() {
	b.mu.Lock()
	b.hello.StdoutClosed = true
	b.mu.Unlock()
	b.declare(plainEvent{"stdout-closed"})
}

// stdinClosed tells in the same way that the server will hear nothing any more.
func (b *bridge) stdinClosed() {
	b.mu.Lock()
	b.hello.StdinClosed = true
	b.mu.Unlock()
	b.declare(plainEvent{"stdin-closed"})
}

// settle waits for the end of pump once the server is gone, as long as the relay takes what comes.
func (b *bridge) settle(ended <-chan struct{}) {
	pause := deliveryStall
	if !b.connected() {
		pause = unheardStall
	}
	b.whileMoving(func() bool {
		select {
		case <-ended:
			return true
		case <-time.After(pause):
			return false
		}
	})
}

// deliver sends the last event and waits for a connected relay to take it.
func (b *bridge) deliver(line []byte) {
	b.announce(line)
	if !b.connected() {
		return
	}
	b.whileMoving(func() bool {
		return b.out.waitUntil(time.Now().Add(deliveryStall), func() bool { return b.out.out == nil || b.out.empty() })
	})
	b.hangUp()
}

// whileMoving repeats a step until it says that it is done, nothing moved meanwhile, or deliveryLimit is over.
func (b *bridge) whileMoving(done func() bool) {
	limit := time.Now().Add(deliveryLimit)
	for seen := b.moved(); !done() && time.Now().Before(limit); {
		now := b.moved()
		if now == seen {
			return
		}
		seen = now
	}
}

// moved is a number that changes whenever the server's output moves on: into the queue, to the socket, to the relay.
func (b *bridge) moved() int64 {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	moved := b.out.end + b.out.sent
	if c, ok := b.out.out.(*conn); ok {
		moved -= int64(c.unread())
	}
	return moved
}

// hangUp ends the stream to the relay and waits for it to close its side: a connection that is closed with unread
// bytes on this side would make the relay's next write fail before it has read everything.
func (b *bridge) hangUp() {
	b.out.mu.Lock()
	if c, ok := b.out.out.(*conn); ok {
		_ = syscall.Shutdown(c.fd, syscall.SHUT_WR) // fails if the relay is gone already
	}
	b.out.mu.Unlock()
	timeout := time.After(hangUpPatience)
	for b.connected() {
		select {
		case <-b.gone:
		case <-timeout:
			return
		}
	}
}

// notify wakes the receiver of a channel of capacity one.
func notify(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
