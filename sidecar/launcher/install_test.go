package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestInstallReplacesTheDestinationAtomically(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "launcher")
	want, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	var running *exec.Cmd
	for range 2 { // the second time it replaces a program that is being executed
		if out, err := exec.Command("sh", "-c", "umask 077; exec "+os.Args[0]+" install "+target).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got, err := os.ReadFile(target)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("the copy has %d bytes, want %d: %v", len(got), len(want), err)
		}
		info, err := os.Stat(target)
		if err != nil || info.Mode() != 0o755 {
			t.Errorf("mode %v: %v", info.Mode(), err)
		}
		if running == nil {
			running = exec.Command(target, "run", "--socket", dir+"/s", "--", "sleep", "100")
			if err := running.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = running.Wait() }()
			defer func() { _ = running.Process.Kill() }()
		}
	}
	left, err := filepath.Glob(dir + "/.mcp-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestInstallSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(os.Args[0], "install", "/no/such/directory/launcher").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "/no/such/directory") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestVersionNamesTheProtocol(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(os.Args[0], "version").Output()
	if err != nil || !strings.Contains(string(out), "protocol 1") {
		t.Errorf("%v: %s", err, out)
	}
}
