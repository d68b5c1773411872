package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExitsAreTruthful(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name    string
		command []string
		code    int
		signal  any
		reason  string
		message string // contained
	}{
		{"zero", sh("exit 0"), 0, nil, "Exited", "exited with code 0"},
		{"code", sh("exit 42"), 42, nil, "Exited", "exited with code 42"},
		{"signal", sh("kill -KILL $$"), 137, "SIGKILL", "Signaled", "SIGKILL"},
		{"own signal", sh("kill -SEGV $$"), 139, "SIGSEGV", "Signaled", "SIGSEGV"},
		{"unknown name", []string{"no-such-server"}, 127, nil, "CommandNotFound", `"no-such-server" not found in PATH (/usr/bin:/bin:` + dir + `)`},
		{"unknown path", []string{"/no/such/server"}, 127, nil, "CommandNotFound", `"/no/such/server" does not exist`},
		{"not executable", []string{write("plain", "x", 0o644)}, 126, nil, "PermissionDenied", "is not executable"},
		{"not executable in PATH", []string{"plain"}, 126, nil, "PermissionDenied", `plain" is not executable`},
		{"directory", []string{dir}, 126, nil, "PermissionDenied", "is a directory"},
		{"no interpreter", []string{write("script", "#!/no/such/python\n", 0o755)}, 127, nil, "CommandNotFound", "interpreter"},
		{"no program", []string{write("data", "\x7fnothing", 0o755)}, 126, nil, "StartFailed", "another machine"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			watch := startWatch()
			run := launch{command: test.command, env: []string{"PATH=/usr/bin:/bin:" + dir}}.start(t)
			code, message := run.wait(), run.termination()
			if code != test.code || message["exitCode"] != float64(test.code) || message["signal"] != test.signal ||
				message["reason"] != test.reason || !strings.Contains(message["message"].(string), test.message) {
				t.Errorf("exit code %d, message %v", code, message)
			}
			if took := watch.took(); took > 2*time.Second && !raceEnabled {
				t.Errorf("took %v", took) // nobody is connected: nobody is waited for
			}
		})
	}
}

func TestExitIsToldAfterTheLastLine(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("read go; seq 1 30000; echo trace >&2; exit 9")}.start(t)
	relay := run.connect()
	relay.send("go\n")
	for range 30000 {
		relay.line()
	}
	event := relay.event("exit")
	if event["exitCode"] != 9.0 || event["signal"] != nil || event["reason"] != "Exited" || event["stderrTail"] != "trace\n" {
		t.Errorf("exit %v", event)
	}
	relay.end()
	if code := run.wait(); code != 9 {
		t.Errorf("exit code %d", code)
	}
}

func TestSlowRelayGetsEverythingOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("read go; seq 1 200000; exit 1")}.start(t)
	relay := run.connect()
	relay.send("go\n")
	for i := range 200000 {
		relay.line()
		if i%20000 == 0 {
			time.Sleep(50 * time.Millisecond) // slow, but not stuck
		}
	}
	relay.event("exit")
}

func TestRelayThatReadsNothingDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("read go; seq 1 500000; exit 6")}.start(t)
	relay := run.connect()
	watch := startWatch()
	relay.send("go\n")
	if code := run.wait(); code != 6 {
		t.Errorf("exit code %d", code)
	}
	if took := watch.took(); took > 3*time.Second && !raceEnabled {
		t.Errorf("took %v", took)
	}
}

func TestRestOfTheGroupEndsWithTheServer(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("sleep 100 & setsid sleep 100 & sh -c 'setsid sleep 100 & exit 0'; read go; exit 2")}.start(t)
	relay := run.connect()
	relay.send("go\n")
	watch := startWatch()
	if event := relay.event("exit"); event["exitCode"] != 2.0 {
		t.Errorf("exit %v", event)
	}
	if code, took := run.wait(), watch.took(); code != 2 || took > 2*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
	run.nothingLeft()
}

func TestOrphansAreReapedAndDoNotHideTheServersExit(t *testing.T) {
	t.Parallel()
	script := "for i in $(seq 1 50); do sh -c 'sh -c \"exit 7\" & exit 0'; done; echo forked; read go; exit 11"
	run := launch{command: sh(script)}.start(t)
	relay := run.connect()
	relay.expect("forked\n")
	eventually(t, "zombies stay", func() bool { return len(children(run.cmd.Process.Pid)) == 1 })
	relay.send("go\n")
	if code := run.wait(); code != 11 {
		t.Errorf("exit code %d", code)
	}
}

func TestKilledLauncherLeavesNoServer(t *testing.T) {
	t.Parallel()
	run := launch{command: sh("echo up; exec sleep 100")}.start(t)
	run.connect().expect("up\n")
	run.signal(syscall.SIGKILL)
	run.wait()
	run.nothingLeft()
}

func TestUsageErrorsAreTheLaunchersOwn(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--max-line-bytes", "0"}, {"--drain", "soon"}, {"--no-such-flag"}, {"--socket", ""}} {
		run := launch{flags: flags, command: fake("echo")}.start(t)
		if code := run.wait(); code != exitLauncherFailed {
			t.Errorf("%v: exit code %d", flags, code)
		}
	}
	run := launch{command: fake("echo"), flags: []string{"--socket", "/no/such/directory/s"}}.start(t)
	if code := run.wait(); code != exitLauncherFailed || run.termination()["reason"] != "StartFailed" {
		t.Errorf("exit code %d, %v", code, run.termination())
	}
}
