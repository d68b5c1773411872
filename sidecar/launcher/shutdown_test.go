package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quick graces, so that the tests are.
var quick = []string{"--drain", "3s", "--stdin-grace", "300ms", "--term-grace", "300ms"}

// stop sends SIGTERM and gives exit code and time, but for that in which nothing ran.
func (l *testLauncher) stop() (int, time.Duration) {
	l.t.Helper()
	watch := startWatch()
	l.signal(syscall.SIGTERM)
	return l.wait(), watch.took()
}

func TestCallsFinishBeforeStdinCloses(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo"), flags: quick}.start(t)
	relay := run.connect()
	run.signal(syscall.SIGTERM)
	if event := relay.event("terminating"); event["drainSeconds"] != 3.0 {
		t.Errorf("event %v", event)
	}
	relay.send("still served\n")
	relay.expect("still served\n")
	run.signal(syscall.SIGTERM) // again is harmless
	run.signal(syscall.SIGINT)
	relay.send("served\n")
	relay.expect("served\n")
	watch := startWatch()
	relay.drained()
	if event := relay.event("exit"); event["exitCode"] != 0.0 || event["reason"] != "Exited" {
		t.Errorf("exit %v", event)
	}
	if code, took := run.wait(), watch.took(); code != 0 || took > time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
}

func TestDrainingHasATimeLimit(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo"), flags: []string{"--drain", "500ms"}}.start(t)
	relay := run.connect()
	start := time.Now()
	code, took := run.stop()
	relay.event("terminating")
	relay.event("exit")
	if code != 0 || time.Since(start) < 500*time.Millisecond || took > 2*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
}

func TestNobodyIsWaitedForWithoutARelay(t *testing.T) {
	t.Parallel()
	gone := launch{command: fake("echo")}.start(t)
	gone.connect().close()
	never := launch{command: fake("echo")}.start(t)
	eventually(t, "no socket", func() bool { _, err := os.Stat(never.socket); return err == nil })
	for _, run := range []*testLauncher{never, gone} {
		if code, took := run.stop(); code != 0 || took > 2*time.Second {
			t.Errorf("exit code %d after %v", code, took)
		}
	}
}

func TestDrainingEndsWhenTheRelayGoes(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo")}.start(t)
	relay := run.connect()
	watch := startWatch()
	run.signal(syscall.SIGTERM)
	relay.event("terminating")
	relay.close()
	if code, took := run.wait(), watch.took(); code != 0 || took > 2*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
}

func TestRelayThatComesWhileDrainingIsToldSo(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo"), flags: quick}.start(t)
	first := run.connect()
	run.signal(syscall.SIGTERM)
	first.event("terminating")
	second := run.connect()
	second.event("terminating")
	second.drained()
	second.event("exit")
}

func TestStubbornServersAreStopped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		script string
		code   int
		least  time.Duration
	}{
		{"ends at the end of stdin", "echo up; cat >/dev/null; exit 4", 4, 0},
		{"ignores the end of stdin", "echo up; exec sleep 100", 143, 300 * time.Millisecond},
		{"handles SIGTERM", "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done", 5, 300 * time.Millisecond},
		{"ignores SIGTERM", "trap '' TERM; echo up; while :; do sleep 0.05; done", 137, 600 * time.Millisecond},
		{"is a wrapper", "sh -c 'sleep 100; true'; true", 143, 300 * time.Millisecond},
		{"is stopped", "echo up; kill -STOP $$", 137, 600 * time.Millisecond},
		{"has a child that sleeps", "sleep 100 & echo up; cat >/dev/null; exit 6", 6, 0},
		{"has a daemon", "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & echo up; cat >/dev/null; exit 7", 7, 0},
		{"has a daemon's daemon", "sh -c 'setsid sh -c \"sleep 100 & sleep 100\" & exit 0'; echo up; cat >/dev/null; exit 8", 8, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := launch{command: sh("echo started; " + test.script), flags: quick}.start(t)
			relay := run.connect()
			relay.expect("started\n")
			if strings.Contains(test.script, "echo up") {
				relay.expect("up\n")
			}
			relay.close()
			start := time.Now()
			code, took := run.stop()
			if code != test.code || run.termination()["exitCode"] != float64(test.code) {
				t.Errorf("exit code %d, message %v", code, run.termination())
			}
			if whole := time.Since(start); whole < test.least || took > 2500*time.Millisecond {
				t.Errorf("took %v of %v", took, whole)
			}
			run.nothingLeft()
		})
	}
}

func TestChildOfAWrapperHasTimeToEnd(t *testing.T) {
	t.Parallel()
	run := launch{flags: []string{"--term-grace", "10s"}}
	dir := t.TempDir()
	child := "trap 'sleep 0.3; echo saved >" + dir + "/saved; exit 0' TERM; echo up; while :; do sleep 0.02; done"
	run.command = sh("sh -c \"" + child + "\" & cat >/dev/null; exit 0")
	launcher := run.start(t)
	relay := launcher.connect()
	relay.expect("up\n")
	relay.close()
	if code, took := launcher.stop(); code != 0 || took > 5*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
	if _, err := os.Stat(dir + "/saved"); err != nil {
		t.Error(err)
	}
}

func TestOtherSignalsAreForwarded(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("signals")}.start(t)
	relay := run.connect()
	relay.expect("ready\n")
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT} {
		run.signal(sig)
		relay.expect(signalName(sig) + "\n")
	}
}

func TestTwentyRestartsLeaveNoProcess(t *testing.T) {
	t.Parallel()
	for range 20 {
		run := launch{command: sh("sleep 100 & setsid sleep 100 & echo up; exec sleep 100"),
			flags: []string{"--stdin-grace", "20ms", "--term-grace", "20ms"}}.start(t)
		relay := run.connect()
		relay.expect("up\n")
		relay.close()
		if code, _ := run.stop(); code != 143 {
			t.Errorf("exit code %d", code)
		}
		run.nothingLeft()
	}
}

func TestPid1EndsWithEverythingInItsNamespace(t *testing.T) {
	t.Parallel()
	if exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").Run() != nil {
		t.Skip("no right to make a process namespace")
	}
	dir := t.TempDir()
	script := "setsid sleep 100 & sh -c 'sh -c \"exit 3\" &'; echo $PPID $$; read x; ls /proc >" + dir + "/proc; exit 12"
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", os.Args[0], "run", "--socket", dir+"/s",
		"--termination-log", dir+"/t", "--", "sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	run := &testLauncher{t: t, dir: dir, socket: dir + "/s", cmd: cmd, exited: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(run.exited) }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	relay := run.connect()
	if line := string(relay.line()); !strings.HasPrefix(line, "1 ") {
		t.Errorf("the launcher is not pid 1: %s", line)
	}
	relay.send("go\n")
	if event := relay.event("exit"); event["exitCode"] != 12.0 {
		t.Errorf("exit %v", event)
	}
	if code := run.wait(); code != 12 {
		t.Errorf("exit code %d", code)
	}
}

func TestLauncherEndsWithItsParent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "launcher")
	if err != nil {
		t.Fatal(err)
	}
	run := &testLauncher{t: t, dir: dir, socket: dir + "/s", mark: "LAUNCHER_TEST=" + dir, exited: make(chan struct{})}
	run.cmd = exec.Command("sh", "-c", `"$0" run --die-with-parent $$ --socket "$1" --termination-log "" -- cat & wait`,
		os.Args[0], run.socket)
	run.cmd.Env = append(os.Environ(), run.mark)
	if err := run.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = run.cmd.Wait(); close(run.exited) }()
	t.Cleanup(run.clean)
	relay := run.connect()
	run.signal(syscall.SIGKILL)
	relay.event("terminating")
	relay.drained()
	if event := relay.event("exit"); event["exitCode"] != 0.0 {
		t.Errorf("exit %v", event)
	}
	run.nothingLeft()
}

func TestLauncherWhoseParentIsGoneAlreadyEnds(t *testing.T) {
	t.Parallel()
	run := launch{command: fake("echo"), flags: []string{"--die-with-parent", "1"}}.start(t)
	if code := run.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	run.nothingLeft()
}
