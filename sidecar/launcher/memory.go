package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const cgroupRoot = "/sys/fs/cgroup"

// oomKills counts what the kernel has killed in this container because its memory was used up. It is 0 where the
// kernel does not tell. The node learns the same by an event that may come after the end of the container.
func oomKills(root string) int {
	for _, name := range []string{"memory.events", "memory/memory.oom_control"} { // cgroup version 2, version 1
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			key, value, _ := strings.Cut(line, " ")
			if key == "oom_kill" {
				count, _ := strconv.Atoi(strings.TrimSpace(value))
				return count
			}
		}
	}
	return 0
}

// forMemory tells an end for lack of memory from any other SIGKILL.
func forMemory(facts exitFacts, kills int) exitFacts {
	if kills > 0 && facts.Signal != nil && *facts.Signal == signalName(syscall.SIGKILL) {
		facts.Reason = reasonOutOfMemory
		facts.Message = "the process was killed because the container's memory limit was reached"
	}
	return facts
}
