package main

import (
	"strings"
	"testing"
	"time"
)

func TestLongLineReachesTheServerWhole(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	relay := run.connect()
	want := bigLine(12 << 20)
	go func() { _, _ = relay.conn.Write([]byte(want)) }()
	if got := string(relay.line()); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestUnfinishedLineOfABrokenConnectionIsDiscarded(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	first := run.connect()
	first.send("whole\nunfini")
	first.expect("whole\n")
	first.close()
	second := run.connect()
	second.send("next\nunfin")
	second.expect("next\n")
	third := run.connect() // while the second still stands
	third.send("last\n")
	third.expect("last\n")
}

func TestTheGreetingCountsTheLinesThatWereTakenBefore(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	first := run.connect()
	first.send("one\n\x00{\"event\":\"unknown\"}\ntwo\nunfini")
	first.expect("one\n")
	first.expect("two\n")
	first.close()
	second := run.connect()
	if first.hello["linesTaken"] != 0.0 || second.hello["linesTaken"] != 3.0 {
		t.Errorf("greetings %v, %v", first.hello, second.hello)
	}
}

func TestControlLinesDoNotReachTheServer(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	relay := run.connect()
	relay.send("a\n\x00{\"event\":\"drained\"}\n\x00{\"event\":\"unknown\"}\n\x00no JSON\nb\n")
	relay.expect("a\n")
	relay.expect("b\n")
}

func TestServerThatDoesNotReadBlocksNothingElse(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("echo one; sleep 0.5; echo two; exit 3")}.start(t)
	relay := run.connect()
	go func() { _, _ = relay.conn.Write([]byte(strings.Repeat(strings.Repeat("x", 1000)+"\n", 16<<10))) }()
	relay.expect("one\n")
	relay.expect("two\n")
	if event := relay.event("exit"); event["exitCode"] != 3.0 {
		t.Errorf("exit %v", event)
	}
	if code := run.wait(); code != 3 {
		t.Errorf("exit code %d", code)
	}
}

func TestServerThatDoesNotReadCanBeStopped(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("echo one; exec sleep 100"), flags: []string{"--stdin-grace", "200ms"}}.start(t)
	relay := run.connect()
	relay.expect("one\n")
	relay.send(strings.Repeat(strings.Repeat("x", 1000)+"\n", 1<<10))
	watch := startWatch()
	run.signal(15)
	relay.event("terminating")
	relay.drained()
	if event := relay.event("exit"); event["signal"] != "SIGTERM" {
		t.Errorf("exit %v", event)
	}
	if code, took := run.wait(), watch.took(); code != 143 || took > 3*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
}

func TestRelayThatReplacesABlockedOneIsHeard(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("echo one; sleep 0.7; exec cat")}.start(t)
	first := run.connect()
	first.expect("one\n")
	if err := first.conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.conn.Write([]byte(strings.Repeat(strings.Repeat("x", 1000)+"\n", 16<<10))); err == nil {
		t.Fatal("16 MiB were taken from the relay although the server reads nothing")
	}
	second := run.connect()
	second.send("mine\n")
	came := 0.0
	for line := second.line(); string(line) != "mine\n"; line = second.line() {
		if came++; len(line) != 1001 {
			t.Fatalf("torn line of %d bytes", len(line))
		}
	}
	if counted := second.hello["linesTaken"]; counted != came {
		t.Errorf("%v lines reached the server, %v were said to", came, counted)
	}
}

func TestServerThatClosedItsStdinDoesNoHarm(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("exec <&-; echo closed; sleep 2; echo lives; exit 4")}.start(t)
	relay := run.connect()
	relay.expect("closed\n")
	for range 50 {
		relay.send("into the void\n")
	}
	relay.event("stdin-closed")
	relay = run.connect()
	if hello := relay.hello; hello["stdinClosed"] != true || hello["stdoutClosed"] != false {
		t.Errorf("greeting %v", hello)
	}
	relay.event("stdin-closed")
	relay.expect("lives\n")
	if event := relay.event("exit"); event["exitCode"] != 4.0 {
		t.Errorf("exit %v", event)
	}
}

func TestOversizedLineToTheServerIsDropped(t *testing.T) {
	t.Parallel()
	run := launch{flags: []string{"--max-line-bytes", "1000"}, command: fake("echo")}.start(t)
	relay := run.connect()
	relay.send("a\n" + strings.Repeat("x", 5000) + "\nb\n")
	relay.expect("a\n")
	relay.expect("b\n")
}
