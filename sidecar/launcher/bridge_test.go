package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHelloNamesOneIncarnationPerProcess(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	first, second := run.connect().hello, run.connect().hello
	other := launch{command: fake("echo")}.start(t).connect().hello
	id := first["incarnation"].(string)
	if len(id) != 16 || first["version"] != 1.0 || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("first %v, second %v", first, second)
	}
	if other["incarnation"] == id {
		t.Errorf("two processes have incarnation %s", id)
	}
	if age := time.Since(time.UnixMilli(int64(first["startTime"].(float64) * 1000))); age < 0 || age > patience {
		t.Errorf("started %v ago", age)
	}
	if err := syscall.Kill(int(first["pid"].(float64)), 0); err != nil {
		t.Errorf("pid %v: %v", first["pid"], err)
	}
}

func TestSocketIsForOwnerAndGroup(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("umask >&2; umask; read x")}.start(t)
	relay := run.connect()
	info, err := os.Stat(run.socket)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o770 {
		t.Errorf("mode %v", info.Mode())
	}
	old := syscall.Umask(0)
	syscall.Umask(old)
	relay.expect(fmt.Sprintf("%04o\n", old)) // the server's umask is what it was
}

func TestSocketOfAnEarlierRunIsReplaced(t *testing.T) {
	t.Parallel()
	first := launch{command: fake("echo")}.start(t)
	first.connect()
	_ = first.cmd.Process.Kill()
	first.wait()
	second := launch{command: fake("echo"), flags: []string{"--socket", first.socket}}.start(t)
	second.socket = first.socket
	relay := second.connect()
	relay.send("here\n")
	relay.expect("here\n")
}

func TestLinesWaitForTheFirstRelay(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("seq 1 20000; echo done >&2; read x")}.start(t)
	eventually(t, "the server is blocked", func() bool { return strings.Contains(run.log.String(), "done") })
	relay := run.connect()
	for i := range 20000 {
		relay.expect(strconv.Itoa(i+1) + "\n")
	}
}

func TestFullBufferHoldsTheServerBack(t *testing.T) {
	t.Parallel()
	run := launch{flags: []string{"--buffer-bytes", "262144"}}
	dir := t.TempDir()
	run.command = fake("count", dir+"/count", "100")
	launcher := run.start(t)
	written := 0
	eventually(t, "the server is not held back", func() bool {
		before := written
		written = number(dir + "/count")
		if written > 0 && written == before {
			time.Sleep(50 * time.Millisecond) // the same twice may be chance
			return number(dir+"/count") == written
		}
		return false
	})
	if bytes := written * 105; bytes > 600<<10 {
		t.Errorf("%d bytes were taken", bytes)
	}
	relay := launcher.connect()
	for i := 1; i < 3*written; i++ {
		if line := string(relay.line()); !strings.HasPrefix(line, strconv.Itoa(i)+" p") {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

func TestTornLineIsSentAgainWhole(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("head -c 4194304 /dev/zero | tr '\\0' a; echo; echo next; read x")}.start(t)
	want := strings.Repeat("a", 4<<20) + "\n"
	first := run.connect()
	if _, err := first.reader.Peek(1000); err != nil {
		t.Fatal(err)
	}
	first.close()
	second := run.connect()
	if _, err := second.reader.Peek(60000); err != nil {
		t.Fatal(err)
	}
	third := run.connect() // replaces the second, which still stands and does not read on
	if got := string(third.line()); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	third.expect("next\n")
}

func TestNewestRelayReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	first := run.connect()
	first.send("one\n")
	first.expect("one\n")
	second := run.connect()
	first.end()
	second.send("two\n")
	second.expect("two\n")
}

func TestLinesKeepTheirOrderOverManyReconnects(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("count", t.TempDir()+"/count", "20000")}.start(t)
	last, lost := 0, 0
	for round := range 30 {
		relay := run.connect()
		for i := range 20 {
			line := relay.line()
			text, padding, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
			n := atoi(text)
			if len(padding) != 20000 || n <= last || (i > 0 && n != last+1) {
				t.Fatalf("round %d: line %d after %d with %d bytes", round, n, last, len(padding))
			}
			lost += n - last - 1
			last = n
		}
		if round%2 == 0 {
			relay.close()
		}
	}
	// What was on its way in the kernel's buffer of a broken connection is lost, no more: 208 KiB and one line a round.
	if lost > 30*25 {
		t.Errorf("%d lines lost", lost)
	}
}

func TestRelayMayComeAndGoWithoutDisturbingTheServer(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	pid := run.connect().hello["pid"]
	for i := range 200 {
		relay := run.connect()
		text := fmt.Sprintf("round %d\n", i)
		relay.send(text)
		relay.expect(text)
		if i%3 == 0 {
			relay.close()
		}
	}
	if now := run.connect().hello["pid"]; now != pid {
		t.Errorf("pid %v became %v", pid, now)
	}
}

func TestClosedStdoutIsToldAndTheServerLivesOn(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("echo last; exec >&-; read x; exit 5")}.start(t)
	relay := run.connect()
	relay.expect("last\n")
	relay.event("stdout-closed")
	later := run.connect() // is told, too, at once
	if relay.hello["stdoutClosed"] != false || later.hello["stdoutClosed"] != true {
		t.Errorf("greetings %v, %v", relay.hello, later.hello)
	}
	later.event("stdout-closed")
	later.send("x\n")
	if event := later.event("exit"); event["exitCode"] != 5.0 {
		t.Errorf("exit %v", event)
	}
	if code := run.wait(); code != 5 {
		t.Errorf("exit code %d", code)
	}
}

func TestTextsAreMaskedForTheRelay(t *testing.T) {
	t.Parallel()
	run := launch{
		flags:   []string{"--plain-env", "NAME"},
		env:     []string{"API_KEY=sesame-open", "NAME=harmless"},
		command: fake("echo"),
	}.start(t)
	relay := run.connect()
	relay.send("\x00" + `{"event":"mask","id":7,"texts":["key: sesame-open","harmless","…"]}` + "\n")
	event := relay.event("masked")
	if fmt.Sprint(event["id"], event["texts"]) != "7 [key: *** harmless …]" {
		t.Errorf("masked %v", event)
	}
	relay.send("goes on\n")
	relay.expect("goes on\n")
}
