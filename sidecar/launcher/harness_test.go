package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait in the tests.
const patience = 20 * time.Second

// TestMain lets the test binary be the launcher and the servers, too, so that a race in the launcher is seen.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "run", "install", "version":
			main()
		case "fake-server":
			fakeServer(os.Args[2], os.Args[3:])
			os.Exit(0)
		}
	}
	go keepTicking()
	os.Exit(m.Run())
}

// fake is the command line of a server written in Go, see fakes_test.go.
func fake(mode string, args ...string) []string {
	return append([]string{os.Args[0], "fake-server", mode}, args...)
}

func sh(script string, args ...string) []string { return append([]string{"sh", "-c", script}, args...) }

// run describes a launcher to start.
type launch struct {
	flags   []string
	env     []string
	command []string
	stderr  *os.File // where the launcher's stderr goes; nil: collected
}

type testLauncher struct {
	t      *testing.T
	dir    string
	socket string
	mark   string // stands in the environment of the launcher and of all its descendants
	cmd    *exec.Cmd
	log    syncBuffer
	exited chan struct{}
}

func (l launch) start(t *testing.T) *testLauncher {
	t.Helper()
	dir, err := os.MkdirTemp("", "launcher") // t.TempDir is too long for a socket in some runs
	if err != nil {
		t.Fatal(err)
	}
	run := &testLauncher{t: t, dir: dir, socket: filepath.Join(dir, "s"), mark: "LAUNCHER_TEST=" + dir, exited: make(chan struct{})}
	args := append([]string{"run", "--socket", run.socket, "--termination-log", run.path("termination")}, l.flags...)
	run.cmd = exec.Command(os.Args[0], append(append(args, "--"), l.command...)...)
	run.cmd.Env = append(os.Environ(), run.mark, "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	run.cmd.Env = append(run.cmd.Env, l.env...)
	run.cmd.Stderr = &run.log
	if l.stderr != nil {
		run.cmd.Stderr = l.stderr
	}
	// Descendants may keep stderr open; the log is not worth waiting for.
	run.cmd.WaitDelay = time.Second
	if err := run.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := run.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Logf("wait for the launcher: %v", err)
		}
		close(run.exited)
	}()
	t.Cleanup(run.clean)
	return run
}

func (l *testLauncher) clean() {
	select {
	case <-l.exited:
	default:
		_ = l.cmd.Process.Kill()
		<-l.exited
	}
	for _, pid := range marked(l.mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if l.t.Failed() {
		l.t.Logf("log of the launcher:\n%s", lastBytes(l.log.String(), 4000))
	}
	if err := os.RemoveAll(l.dir); err != nil {
		l.t.Error(err)
	}
}

func (l *testLauncher) path(name string) string { return filepath.Join(l.dir, name) }

func (l *testLauncher) signal(sig syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(sig); err != nil {
		l.t.Fatal(err)
	}
}

// wait gives the launcher's exit code.
func (l *testLauncher) wait() int {
	l.t.Helper()
	select {
	case <-l.exited:
	case <-time.After(patience):
		l.t.Fatal("the launcher does not end")
	}
	return l.cmd.ProcessState.ExitCode()
}

// termination reads the termination message.
func (l *testLauncher) termination() map[string]any {
	l.t.Helper()
	text, err := os.ReadFile(l.path("termination"))
	if err != nil {
		l.t.Fatal(err)
	}
	if len(text) > 4096 {
		l.t.Errorf("termination message has %d bytes", len(text))
	}
	var message map[string]any
	if err := json.Unmarshal(text, &message); err != nil {
		l.t.Fatalf("termination message %q: %v", text, err)
	}
	return message
}

// nothingLeft checks that no descendant lives.
func (l *testLauncher) nothingLeft() {
	l.t.Helper()
	eventually(l.t, "processes are left", func() bool { return len(marked(l.mark)) == 0 })
}

// marked lists the live processes that have a variable in their environment.
func marked(mark string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append(environ, 0), []byte(mark+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

func eventually(t *testing.T, complaint string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(complaint)
		}
	}
}

// number reads a number that a server wrote to a file, 0 as long as there is none.
func number(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// testRelay is a relay's end of the socket.
type testRelay struct {
	t      *testing.T
	conn   *net.UnixConn
	reader *bufio.Reader
	hello  map[string]any
}

// connect connects and reads the greeting.
func (l *testLauncher) connect() *testRelay {
	l.t.Helper()
	var conn net.Conn
	eventually(l.t, "no socket", func() bool {
		var err error
		conn, err = net.Dial("unix", l.socket)
		return err == nil
	})
	relay := &testRelay{t: l.t, conn: conn.(*net.UnixConn), reader: bufio.NewReaderSize(conn, 64<<10)}
	l.t.Cleanup(func() { _ = conn.Close() })
	relay.hello = relay.event("hello")
	return relay
}

// tryConnect connects if the socket is there and reads the greeting.
func (l *testLauncher) tryConnect() *testRelay {
	conn, err := net.Dial("unix", l.socket)
	if err != nil {
		return nil
	}
	relay := &testRelay{conn: conn.(*net.UnixConn), reader: bufio.NewReaderSize(conn, 64<<10)}
	if _, err := relay.read(); err != nil {
		return nil
	}
	return relay
}

// line reads one line with its newline.
func (r *testRelay) line() []byte {
	r.t.Helper()
	line, err := r.read()
	if err != nil {
		r.t.Fatalf("read a line: %v after %q", err, firstBytes(string(line), 200))
	}
	return line
}

func (r *testRelay) read() ([]byte, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return r.reader.ReadBytes('\n')
}

func (r *testRelay) expect(want string) {
	r.t.Helper()
	if got := string(r.line()); got != want {
		r.t.Fatalf("got line %.200q, want %.200q", got, want)
	}
}

// event reads one line that must be the control line of an event.
func (r *testRelay) event(name string) map[string]any {
	r.t.Helper()
	line := r.line()
	if line[0] != 0 {
		r.t.Fatalf("got line %.200q, want event %s", line, name)
	}
	var event map[string]any
	if err := json.Unmarshal(line[1:], &event); err != nil {
		r.t.Fatalf("control line %q: %v", line, err)
	}
	if event["event"] != name {
		r.t.Fatalf("got %v, want event %s", event, name)
	}
	return event
}

func (r *testRelay) end() {
	r.t.Helper()
	if line, err := r.read(); !errors.Is(err, io.EOF) {
		r.t.Fatalf("got %.200q, %v, want the end of the stream", line, err)
	}
}

func (r *testRelay) send(text string) {
	r.t.Helper()
	if err := r.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(r.conn, text); err != nil {
		r.t.Fatal(err)
	}
}

func (r *testRelay) drained() { r.send("\x00{\"event\":\"drained\"}\n") }

func (r *testRelay) close() {
	r.t.Helper()
	if err := r.conn.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// syncBuffer is a buffer for two goroutines.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// memory gives a value in KiB from /proc/PID/status.
func (l *testLauncher) memory(name string) int {
	l.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.cmd.Process.Pid))
	if err != nil {
		l.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		l.t.Fatal(err)
	}
	return kib
}
