package main

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// After SIGKILL nothing but a process stuck in the kernel is left; it is not waited for longer.
	killPatience = 2 * time.Second
	// stderrPatience bounds the wait for the last bytes of stderr.
	stderrPatience = 300 * time.Millisecond
	// A server that ends closes its pipes a little before its exit is seen; only later it is news.
	closedDelay = 200 * time.Millisecond
)

// stage of the life of the server.
type stage int

const (
	running  stage = iota
	draining       // SIGTERM came: running calls may finish
	closing        // its stdin is closed
	ending         // it got SIGTERM
	killing        // it got SIGKILL
)

// supervisor runs one server from start to exit.
type supervisor struct {
	opts    options
	signals chan os.Signal
	process *process
	bridge  *bridge
	stderr  *stderrPump

	status      chan syscall.WaitStatus
	none        chan struct{} // closed when no descendant is left
	stdoutEnded chan struct{}
	stdinEnded  chan struct{} // closed when the server has closed its stdin

	oomKills  int  // before the start of the server
	overLimit bool // it was told to use more memory than it may

	stage stage
	timer <-chan time.Time // end of the stage
	exit  *exitFacts       // of the server, once it has ended
}

// runCommand is "run": it returns the exit code of the server.
func runCommand(args []string) int {
	opts, err := parseOptions(args)
	if err != nil {
		logf("%v", err)
		return exitLauncherFailed
	}
	if opts.control != "" {
		return keep(opts)
	}
	facts := run(opts)
	return facts.ExitCode
}

func run(opts options) exitFacts {
	s := &supervisor{
		opts:        opts,
		signals:     make(chan os.Signal, 16),
		status:      make(chan syscall.WaitStatus, 1),
		none:        make(chan struct{}),
		stdoutEnded: make(chan struct{}),
		stdinEnded:  make(chan struct{}),
		oomKills:    oomKills(cgroupRoot),
		stderr:      newStderrPump(newMasker(os.Environ(), opts.plainEnv)),
	}
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGQUIT, overLimit)
	becomeSubreaper()
	if opts.parent != 0 {
		followParent(opts.parent)
	}
	if err := s.start(); err != nil {
		return s.report(exitOfStart(err))
	}
	facts := s.supervise()
	killTree(s.process.pid, s.none, killPatience)
	s.bridge.settle(s.stdoutEnded)
	facts.StderrTail = s.stderr.finish(stderrPatience)
	return s.report(facts)
}

// start opens the socket, then starts the server, then everything that serves it.
func (s *supervisor) start() error {
	listener, err := listen(s.opts.socket)
	if err != nil {
		return err
	}
	s.bridge = newBridge(s.opts, listener, s.stderr)
	s.bridge.hello = helloEvent{Event: "hello", Version: protocolVersion, Incarnation: newIncarnation(),
		StartTime: unixSeconds(time.Now())}
	s.process, err = startProcess(s.opts.command)
	if err != nil {
		return err
	}
	s.bridge.hello.PID = s.process.pid
	s.bridge.stdin, err = newStdin(s.process.stdin, s.opts.maxLineBytes, s.bridge.control, func() { close(s.stdinEnded) })
	if err != nil {
		return err
	}
	stdout, err := pipeEnd(s.process.stdout, "stdout of the server")
	if err != nil {
		return err
	}
	reader, err := newRawReader(stdout)
	if err != nil {
		return err
	}
	go reap(s.process.pid, s.status, s.none)
	go s.stderr.run(s.process.stderr, containerLog)
	go s.bridge.pump(reader, s.stdoutEnded)
	go s.bridge.serve()
	return nil
}

func newIncarnation() string {
	var id [8]byte
	rand.Read(id[:]) // never fails: it ends the program instead
	return hex.EncodeToString(id[:])
}

// supervise waits for the end of the server and, once it was told to end, of its descendants.
func (s *supervisor) supervise() exitFacts {
	stdoutEnded, stdinEnded := s.stdoutEnded, s.stdinEnded
	var stdoutNews, stdinNews <-chan time.Time
	for {
		select {
		case sig := <-s.signals:
			s.onSignal(sig.(syscall.Signal))
		case <-s.timer:
			s.advance()
		case <-s.bridge.drained:
			if s.stage == draining {
				s.advance()
			}
		case <-s.bridge.gone:
			if s.stage == draining && !s.bridge.connected() {
				s.advance()
			}
		case <-stdoutEnded:
			stdoutEnded, stdoutNews = nil, time.After(closedDelay)
		case <-stdinEnded:
			stdinEnded, stdinNews = nil, time.After(closedDelay)
		case <-stdoutNews:
			logf("the server closed its stdout and goes on")
			s.bridge.stdoutClosed()
		case <-stdinNews:
			logf("the server closed its stdin: what is sent to it is discarded")
			s.bridge.stdinClosed()
		case ws := <-s.status:
			s.onExit(s.explain(exitOf(ws)))
		case <-s.noneLeft():
			return *s.exit
		}
		if s.exit != nil && (s.stage < closing || s.stage == killing) {
			return *s.exit
		}
	}
}

// noneLeft is ready when the server and all its descendants are gone.
func (s *supervisor) noneLeft() <-chan struct{} {
	if s.exit == nil {
		return nil
	}
	return s.none
}

// explain says why the server was killed, where that is known.
func (s *supervisor) explain(facts exitFacts) exitFacts {
	if s.overLimit {
		return overMemory(facts, s.opts.memoryLimit)
	}
	return forMemory(facts, oomKills(cgroupRoot)-s.oomKills)
}

func (s *supervisor) onSignal(sig syscall.Signal) {
	switch {
	case sig == overLimit:
		s.overLimit = true
		signalTree(s.process.pid, syscall.SIGKILL)
	case sig != syscall.SIGTERM && sig != syscall.SIGINT:
		signalProcess(s.process.pid, sig)
	case s.stage == running:
		s.advance()
	}
}

func (s *supervisor) onExit(facts exitFacts) {
	s.exit = &facts
	if s.stage == closing {
		s.advance() // a wrapper ended, its children have the rest of the time
	}
}

// advance enters the next stage of the shutdown.
func (s *supervisor) advance() {
	s.stage++
	switch s.stage {
	case draining:
		s.bridge.declare(terminatingEvent{"terminating", s.opts.drain.Seconds()})
		s.timer = time.After(s.opts.drain)
		if !s.bridge.connected() {
			s.advance()
		}
	case closing:
		go s.bridge.stdin.close(s.opts.stdinGrace)
		s.timer = time.After(s.opts.stdinGrace)
	case ending:
		signalTree(s.process.pid, syscall.SIGTERM)
		s.timer = time.After(s.opts.termGrace)
	case killing:
		signalTree(s.process.pid, syscall.SIGKILL)
		s.timer = time.After(killPatience)
	default: // it does not even end by SIGKILL
		facts := exitOf(syscall.WaitStatus(syscall.SIGKILL))
		facts.Message = "the process did not end after SIGKILL"
		s.exit, s.stage = &facts, killing
	}
}

// report makes an exit known: in the log, in the termination message, to the relay.
func (s *supervisor) report(facts exitFacts) exitFacts {
	logf("%s", facts.Message)
	if err := writeTermination(s.opts.terminationLog, facts); err != nil {
		logf("write the termination message: %v", err)
	}
	if s.bridge != nil {
		s.bridge.deliver(controlLine(exitEvent{"exit", facts, unixSeconds(time.Now())}))
	}
	return facts
}
