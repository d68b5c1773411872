package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// policies gives the scheduling policy of each thread of a process.
func policies(t *testing.T, pid int) map[int]int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	found := map[int]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		policy, err := strconv.Atoi(strings.Fields(rest)[38]) // field 41 of the file, see proc(5)
		if err != nil {
			t.Fatal(err)
		}
		tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		found[tid] = policy
	}
	return found
}

func TestThreadsThatForwardInterruptNobodyAndTheServerIsScheduledAsUsual(t *testing.T) {
	run := launch{command: sh(`exec cat`)}.start(t)
	relay := run.connect()
	for range 200 { // until the runtime has started all the threads that this takes
		relay.send("hello\n")
		relay.expect("hello\n")
	}
	launcher := run.cmd.Process.Pid
	for tid, policy := range policies(t, launcher) {
		if want := schedBatch; tid != launcher && policy != want {
			t.Errorf("thread %d of the launcher has policy %d, want %d", tid, policy, want)
		}
	}
	server := int(relay.hello["pid"].(float64))
	for tid, policy := range policies(t, server) {
		if policy != 0 {
			t.Errorf("thread %d of the server has policy %d, want the usual 0", tid, policy)
		}
	}
}
