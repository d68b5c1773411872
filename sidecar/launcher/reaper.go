package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const prSetChildSubreaper = 36

// becomeSubreaper makes every orphan among the server's descendants a child of this process, as pid 1 has it anyway.
func becomeSubreaper() {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		logf("cannot become the reaper of orphans: %v", errno)
	}
}

// followParent has the kernel send SIGTERM to this process when its parent ends. A parent that has ended before, so that
// this process has another one by now, counts as one that ends now. It must be called by the main thread.
func followParent(pid int) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0); errno != 0 {
		logf("cannot be told of the end of process %d: %v", pid, errno)
	}
	if os.Getppid() != pid {
		signalProcess(os.Getpid(), syscall.SIGTERM)
	}
}

// reap collects every child that ends, also adopted ones. It sends the status of the process pid, and closes none when
// no descendant is left. Nothing else in this program may wait for children.
func reap(pid int, status chan<- syscall.WaitStatus, none chan<- struct{}) {
	defer close(none)
	for {
		var ws syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // ECHILD
			return
		}
		if ended == pid {
			status <- ws
		}
	}
}

// signalTree sends a signal to the server's process group and to adopted children outside it.
func signalTree(pgid int, sig syscall.Signal) {
	signalProcess(-pgid, sig)
	for _, pid := range children(os.Getpid()) {
		if group, err := syscall.Getpgid(pid); err == nil && group != pgid {
			signalProcess(pid, sig)
		}
	}
}

func signalProcess(pid int, sig syscall.Signal) {
	if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
		logf("send signal %s to %d: %v", signalName(sig), pid, err)
	}
}

// killTree kills what is left of the server, and what that leaves to us in turn, until none is closed or the time is up.
func killTree(pgid int, none <-chan struct{}, patience time.Duration) {
	limit := time.After(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		select {
		case <-none:
			return
		default:
			signalTree(pgid, syscall.SIGKILL)
		}
		select {
		case <-none:
			return
		case <-limit:
			logf("processes that SIGKILL did not end are left behind")
			return
		case <-time.After(pause):
		}
	}
}

// children lists the processes whose parent is pid.
func children(parent int) []int {
	// In a process namespace of its own with a foreign /proc the numbers there mean other processes.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil
	}
	proc, err := os.Open("/proc")
	if err != nil {
		logf("list processes: %v", err)
		return nil
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		logf("list processes: %v", err)
	}
	var found []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && parentOf(name) == parent {
			found = append(found, pid)
		}
	}
	return found
}

// parentOf gives the parent of a process, 0 if it is gone.
func parentOf(pid string) int {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	// "pid (name) state parent …": the name may hold anything, also parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}
