package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keeping starts a launcher that runs more processes of a command, at most max.
func keeping(t *testing.T, max string, command []string, more ...string) *testLauncher {
	t.Helper()
	dir, err := os.MkdirTemp("", "keeper")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	flags := []string{"--control", filepath.Join(dir, "control"), "--max-processes", max}
	flags = append(flags, more...)
	run := launch{command: command, flags: flags, env: []string{"KEEPER_DIR=" + dir}}.start(t)
	eventually(t, "there is no control socket", func() bool {
		_, err := os.Stat(filepath.Join(dir, "control"))
		return err == nil
	})
	return run
}

func controlDir(run *testLauncher) string {
	for _, entry := range run.cmd.Env {
		if dir, found := strings.CutPrefix(entry, "KEEPER_DIR="); found {
			return dir
		}
	}
	return ""
}

// talk is a connection to the control socket.
type talk struct {
	t      *testing.T
	conn   net.Conn
	reader *bufio.Reader
}

func ask(run *testLauncher, event, id string) talk {
	run.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(controlDir(run), "control"))
	if err != nil {
		run.t.Fatal(err)
	}
	run.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		run.t.Fatal(err)
	}
	if _, err := conn.Write(append(encodeJSON(request{event, id}), '\n')); err != nil {
		run.t.Fatal(err)
	}
	return talk{run.t, conn, bufio.NewReader(conn)}
}

func (c talk) next() answer {
	c.t.Helper()
	line, err := c.reader.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	var told answer
	if err := json.Unmarshal(line, &told); err != nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	return told
}

func (c talk) expect(event string) answer {
	c.t.Helper()
	told := c.next()
	if told.Event != event {
		c.t.Fatalf("got %+v, want %s", told, event)
	}
	return told
}

// serves waits until the process of this id is served on a socket of its own.
func serves(run *testLauncher, id string) {
	run.t.Helper()
	eventually(run.t, "nothing serves "+id, func() bool {
		conn, err := net.Dial("unix", filepath.Join(controlDir(run), id+processSuffix))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func TestProcessesAreStartedAndStoppedOneByOne(t *testing.T) {
	run := keeping(t, "2", sh("exec cat"))
	one, two := ask(run, "start", "a"), ask(run, "start", "b")
	one.expect("started")
	two.expect("started")
	serves(run, "a")
	serves(run, "b")
	watch := ask(run, "watch", "a")
	if told := ask(run, "stop", "a").expect("ended"); told.ExitCode != 0 {
		t.Errorf("a server that ends with its stdin exited with %d", told.ExitCode)
	}
	one.expect("ended")
	watch.expect("ended")
	if _, err := os.Stat(filepath.Join(controlDir(run), "a"+processSuffix)); !os.IsNotExist(err) {
		t.Errorf("the socket of an ended process is there: %v", err)
	}
	ask(run, "start", "c").expect("started")
	serves(run, "b")
	run.signal(syscall.SIGTERM)
	two.expect("ended")
	if code := run.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left := marked(run.mark); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestWhatCannotBeDoneIsRefused(t *testing.T) {
	run := keeping(t, "1", sh("exec cat"))
	ask(run, "start", "a").expect("started")
	for _, one := range []struct{ event, id, why string }{
		{"start", "a", "there is a process of this id"},
		{"start", "b", "all 1 processes run"},
		{"start", "../x", "the id is not"},
		{"start", "", "the id is not"},
		{"stop", "b", "there is no such process"},
		{"watch", "", "there is no such process"},
		{"dance", "a", "the event is none of"},
	} {
		if told := ask(run, one.event, one.id).expect("refused"); !strings.Contains(told.Message, one.why) {
			t.Errorf("%s %q: %q", one.event, one.id, told.Message)
		}
	}
}

func TestTheEndOfOneProcessEndsNoOther(t *testing.T) {
	run := keeping(t, "2", sh(`for n in 1 2; do if mkdir "$KEEPER_DIR/$n" 2>/dev/null; then exec cat; fi; done; exit 3`))
	ask(run, "start", "a").expect("started")
	eventually(t, "the first two do not run", func() bool {
		_, err := os.Stat(filepath.Join(controlDir(run), "2"))
		return err == nil
	})
	failing := ask(run, "start", "b")
	failing.expect("started")
	if told := failing.expect("ended"); told.ExitCode != 3 {
		t.Errorf("exit code %d", told.ExitCode)
	}
	serves(run, "a")
	select {
	case <-run.exited:
		t.Error("the launcher ended, too")
	default:
	}
}

func TestTheEndOfTheFirstProcessEndsAll(t *testing.T) {
	run := keeping(t, "2", sh(`if mkdir "$KEEPER_DIR/first" 2>/dev/null; then `+
		`while [ ! -e "$KEEPER_DIR/end" ]; do sleep 0.05; done; exit 7; fi; exec cat`))
	eventually(t, "the first process did not start", func() bool {
		_, err := os.Stat(filepath.Join(controlDir(run), "first"))
		return err == nil
	})
	other := ask(run, "start", "a")
	other.expect("started")
	serves(run, "a")
	if err := os.WriteFile(filepath.Join(controlDir(run), "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other.expect("ended")
	if code := run.wait(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if message := run.termination(); message["exitCode"] != float64(7) {
		t.Errorf("termination message %v", message)
	}
	if left := marked(run.mark); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestAFirstProcessThatRanForLongIsStartedAgainBesideTheOthers(t *testing.T) {
	run := keeping(t, "2", sh(`if mkdir "$KEEPER_DIR/first" 2>/dev/null; then `+
		`while [ ! -e "$KEEPER_DIR/end" ]; do sleep 0.05; done; exit 7; fi; exec cat`), "--steady", "1ms")
	eventually(t, "the first process did not start", func() bool {
		_, err := os.Stat(filepath.Join(controlDir(run), "first"))
		return err == nil
	})
	ask(run, "start", "a").expect("started")
	serves(run, "a")
	before := run.connect()
	if err := os.WriteFile(filepath.Join(controlDir(run), "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before.event("exit")
	eventually(t, "no other process is served", func() bool {
		conn, err := net.Dial("unix", run.socket)
		if err != nil {
			return false
		}
		defer conn.Close()
		line, err := bufio.NewReader(conn).ReadString('\n')
		return err == nil && !strings.Contains(line, before.hello["incarnation"].(string))
	})
	serves(run, "a")
}

func TestALauncherWhoseOnlyProcessEndedAndWasStartedAgainStillSeesTheEndOfEveryOne(t *testing.T) {
	run := keeping(t, "1", sh(`echo x >> "$KEEPER_DIR/starts"; echo $$ > "$KEEPER_DIR/pid"; exec cat`), "--steady", "1ms")
	for starts := 1; starts <= 3; starts++ {
		eventually(t, "the first process does not run", func() bool {
			lines, err := os.ReadFile(filepath.Join(controlDir(run), "starts"))
			return err == nil && strings.Count(string(lines), "x") == starts && run.tryConnect() != nil
		})
		if starts == 3 {
			break
		}
		if err := syscall.Kill(number(filepath.Join(controlDir(run), "pid")), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b"} {
		start := ask(run, "start", id)
		start.expect("started")
		serves(run, id)
		ask(run, "stop", id).expect("ended")
		start.expect("ended")
	}
	run.signal(syscall.SIGTERM)
	run.wait()
	run.nothingLeft()
}

func TestALauncherOfOneProcessThatIsKilledLeavesNothing(t *testing.T) {
	run := keeping(t, "2", sh("(sleep 100 & setsid sleep 100 & sleep 100) & exec cat"))
	one := ask(run, "start", "a")
	one.expect("started")
	serves(run, "a")
	eventually(t, "not everything was started", func() bool { return sleeping(run) == 6 })
	var victim int
	for _, pid := range children(run.cmd.Process.Pid) {
		command, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && strings.Contains(string(command), "a"+processSuffix) {
			victim = pid
		}
	}
	if victim == 0 {
		t.Fatal("no launcher of the process was found")
	}
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if told := one.expect("ended"); told.ExitCode != 137 {
		t.Errorf("exit code %d", told.ExitCode)
	}
	eventually(t, "something of the process is left", func() bool { return sleeping(run) == 3 })
}

// sleeping counts the descendants of a launcher that sleep.
func sleeping(run *testLauncher) int {
	found := 0
	for _, pid := range marked(run.mark) {
		command, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && strings.HasPrefix(string(command), "sleep\x00") {
			found++
		}
	}
	return found
}
