package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestKillsForMemoryAreCounted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, text string
		want             int
	}{
		{"version 2", "memory.events", "low 0\nhigh 0\nmax 4\noom 1\noom_kill 2\noom_group_kill 0\n", 2},
		{"version 1", "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1},
		{"an old kernel", "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0},
		{"nonsense", "memory.events", "oom_kill many\n", 0},
		{"nothing", "other", "", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), test.file)
			root := filepath.Dir(path)
			if err := os.MkdirAll(root, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if filepath.Base(root) == "memory" {
				root = filepath.Dir(root)
			}
			if got := oomKills(root); got != test.want {
				t.Errorf("%d kills, want %d", got, test.want)
			}
		})
	}
}

func TestOnlyAKillCanBeForMemory(t *testing.T) {
	t.Parallel()
	killed, segfault := exitOf(syscall.WaitStatus(syscall.SIGKILL)), exitOf(syscall.WaitStatus(syscall.SIGSEGV))
	for name, test := range map[string]struct {
		facts exitFacts
		kills int
		want  string
	}{
		"killed for memory": {killed, 1, reasonOutOfMemory},
		"killed by someone": {killed, 0, reasonSignaled},
		"another signal":    {segfault, 1, reasonSignaled},
		"left by itself":    {exitOf(syscall.WaitStatus(0)), 1, reasonExited},
	} {
		if got := forMemory(test.facts, test.kills); got.Reason != test.want {
			t.Errorf("%s: %s, want %s", name, got.Reason, test.want)
		}
	}
}
