package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const (
	// tailBytes of stderr go into the exit event and the termination message.
	tailBytes = 2048
	// messageBytes bounds the sentence about an exit.
	messageBytes = 1024
	// terminationBytes is the most that the kubelet reads.
	terminationBytes = 4096
)

var signalNames = strings.Fields("0 SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV " +
	"SIGUSR2 SIGPIPE SIGALRM SIGTERM SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ " +
	"SIGVTALRM SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS")

func signalName(sig syscall.Signal) string {
	if sig > 0 && int(sig) < len(signalNames) {
		return signalNames[sig]
	}
	return "signal " + strconv.Itoa(int(sig))
}

// exitOf describes the end of a process.
func exitOf(ws syscall.WaitStatus) exitFacts {
	if ws.Signaled() {
		name := signalName(ws.Signal())
		return exitFacts{
			ExitCode: 128 + int(ws.Signal()), Signal: &name, Reason: reasonSignaled,
			Message: "the process was killed by " + name,
		}
	}
	return exitFacts{
		ExitCode: ws.ExitStatus(), Reason: reasonExited,
		Message: fmt.Sprintf("the process exited with code %d", ws.ExitStatus()),
	}
}

// exitOfStart describes a process that never was.
func exitOfStart(err error) exitFacts {
	facts := exitFacts{ExitCode: exitLauncherFailed, Reason: reasonStartFailed, Message: err.Error()}
	var failed *startError
	if errors.As(err, &failed) {
		facts.ExitCode, facts.Reason = failed.code, failed.reason
	}
	facts.Message = firstBytes(cleanText([]byte(facts.Message)), messageBytes)
	return facts
}

type terminationMessage struct {
	Version int `json:"version"`
	exitFacts
}

// encodeTermination gives the termination message; the tail of stderr is cut to what fits.
func encodeTermination(facts exitFacts) []byte {
	for {
		document := encodeJSON(terminationMessage{protocolVersion, facts})
		excess := len(document) - terminationBytes
		if excess <= 0 || facts.StderrTail == "" {
			return document
		}
		// A byte of the tail is one to six bytes of JSON: cutting too little is repeated, cutting too much avoided.
		facts.StderrTail = lastBytes(facts.StderrTail, len(facts.StderrTail)-(excess+5)/6)
	}
}

// writeTermination writes the termination message. The kubelet's file is there already; a file elsewhere is created.
func writeTermination(path string, facts exitFacts) error {
	if path == "" {
		return nil
	}
	flags := os.O_WRONLY | os.O_TRUNC
	if path != defaultTerminationLog {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, os.ErrNotExist) && path == defaultTerminationLog {
		return nil // not in a pod
	}
	if err != nil {
		return err
	}
	_, err = file.Write(encodeTermination(facts))
	return errors.Join(err, file.Close())
}
