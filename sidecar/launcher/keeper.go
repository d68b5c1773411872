package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// requestBytes bound a request on the control socket, requestPatience the wait for one.
	requestBytes    = 4096
	requestPatience = 5 * time.Second
	processSuffix   = ".process"
)

var processID = regexp.MustCompile(`^[0-9a-z]{1,32}$`)

// request asks for something on the control socket: one line of JSON.
type request struct {
	Event string `json:"event"` // start, watch or stop
	ID    string `json:"id"`
}

// answer tells what came of a request; started is followed by ended.
type answer struct {
	Event    string `json:"event"` // started, ended or refused
	ID       string `json:"id"`
	ExitCode int    `json:"exitCode"`
	Message  string `json:"message"`
}

// asked is a request and the way to answer it; the channel is closed after the last answer.
type asked struct {
	request
	answers chan<- answer
}

// ended is a child that was collected.
type ended struct {
	pid    int
	status syscall.WaitStatus
}

// kept is a process: a launcher of its own, with the one server that it runs.
type kept struct {
	pid     int
	id      string // empty: the first process
	socket  string
	waiting []chan<- answer
}

// keeper runs the same command several times, each under a launcher of its own: the first one from the start on, the
// others as they are asked for on the control socket. Its state belongs to the main thread, whose end would
// be taken by the children for its own.
type keeper struct {
	opts     options
	requests chan asked
	ended    chan ended
	first    *kept
	since    time.Time // start of the first one
	others   map[string]*kept
	exitCode int
	stopping bool
	guard    *guard // nil: processes have no memory limit
}

// keep is "run" with --control: it returns the exit code of the first process.
func keep(opts options) int {
	k := &keeper{opts: opts, requests: make(chan asked), ended: make(chan ended), others: map[string]*kept{}}
	signals, news := make(chan os.Signal, 16), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT)
	signal.Notify(news, syscall.SIGCHLD) // before the first child: the end of none goes unheard
	becomeSubreaper()
	if opts.parent != 0 {
		followParent(opts.parent)
	}
	listener, err := listen(opts.control)
	if err == nil && opts.memoryLimit > 0 {
		k.guard, err = newGuard(opts.memoryLimit)
	}
	if err == nil {
		err = k.startFirst()
	}
	if err != nil {
		logf("%v", err)
		return exitLauncherFailed
	}
	go k.collect(news)
	go k.serve(listener)
	var excesses <-chan int
	if k.guard != nil {
		excesses = k.guard.excesses
		go k.guard.run()
	}
	for k.first != nil || len(k.others) > 0 {
		if k.guard != nil {
			k.guard.roots.Store(k.pids())
		}
		select {
		case sig := <-signals:
			k.onSignal(sig.(syscall.Signal))
		case one := <-k.requests:
			k.onRequest(one)
		case one := <-k.ended:
			k.onEnd(one)
		case pid := <-excesses:
			k.onExcess(pid)
		}
	}
	return k.exitCode
}

// startFirst starts the process that tells whether the command works at all.
func (k *keeper) startFirst() (err error) {
	k.since = time.Now()
	k.first, err = k.start("", k.opts.socket, k.opts.terminationLog)
	return err
}

// start runs the command under another launcher, which ends with this one.
func (k *keeper) start(id, socket, terminationLog string) (*kept, error) {
	args := append([]string{os.Args[0], "run", "--socket", socket, "--termination-log", terminationLog,
		"--die-with-parent", strconv.Itoa(os.Getpid())}, k.opts.inherited()...)
	pid, err := syscall.ForkExec("/proc/self/exe", append(append(args, "--"), k.opts.command...), &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start a launcher: %w", err)
	}
	return &kept{pid: pid, id: id, socket: socket}, nil
}

// collect waits for children as long as the keeper runs. Between the end of the last one and the next start there is none:
// news tells of the end of a child. It holds one that was not taken, and that may be an old one.
func (k *keeper) collect(news <-chan os.Signal) {
	for {
		var ws syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &ws, 0, nil); err {
		case nil:
			k.ended <- ended{pid, ws}
		case syscall.EINTR:
		default: // ECHILD
			<-news
		}
	}
}

func (k *keeper) onSignal(sig syscall.Signal) {
	if sig == syscall.SIGTERM || sig == syscall.SIGINT {
		k.stopping, sig = true, syscall.SIGTERM
	}
	for _, one := range k.others {
		signalProcess(one.pid, sig)
	}
	if k.first != nil {
		signalProcess(k.first.pid, sig)
	}
}

func (k *keeper) onEnd(one ended) {
	defer k.killStrays()
	if k.first != nil && one.pid == k.first.pid {
		k.onFirstEnd(exitOf(one.status).ExitCode)
		return
	}
	for id, other := range k.others {
		if other.pid == one.pid {
			delete(k.others, id)
			other.end(exitOf(one.status).ExitCode)
		}
	}
}

// onFirstEnd starts the first process again if it ran for long: others need not end with it. One that does not stay says
// that the command does not work, and that ends everything.
func (k *keeper) onFirstEnd(code int) {
	k.exitCode, k.first = code, nil
	if !k.stopping && time.Since(k.since) >= k.opts.steady {
		logf("the first process ended after more than %s: it is started again", k.opts.steady)
		err := k.startFirst()
		if err == nil {
			return
		}
		logf("%v", err)
	}
	k.onSignal(syscall.SIGTERM)
}

// end removes what is left of a process and tells everybody who waits for that.
func (p *kept) end(code int) {
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		logf("remove the socket of a process: %v", err)
	}
	for _, answers := range p.waiting {
		answers <- answer{Event: "ended", ID: p.id, ExitCode: code}
		close(answers)
	}
}

// killStrays ends what a launcher that was killed left behind.
func (k *keeper) killStrays() {
	known := k.pids()
	for _, pid := range children(os.Getpid()) {
		if !slices.Contains(known, pid) {
			signalProcess(pid, syscall.SIGKILL)
		}
	}
}

// pids lists the launchers that run.
func (k *keeper) pids() []int {
	found := make([]int, 0, len(k.others)+1)
	if k.first != nil {
		found = append(found, k.first.pid)
	}
	for _, one := range k.others {
		found = append(found, one.pid)
	}
	return found
}

// onExcess tells a launcher that its processes exceed the memory limit: it knows best how to end them.
func (k *keeper) onExcess(pid int) {
	if slices.Contains(k.pids(), pid) {
		signalProcess(pid, overLimit)
	}
}

// onRequest does what is asked for. A channel of answers has room for two: nothing here waits for a client.
func (k *keeper) onRequest(one asked) {
	process := k.others[one.ID]
	switch {
	case one.Event == "start":
		k.onStart(one, process)
	case process == nil && (one.Event == "stop" || one.Event == "watch"):
		one.refuse("there is no such process")
	case one.Event == "stop":
		process.waiting = append(process.waiting, one.answers)
		signalProcess(process.pid, syscall.SIGTERM)
	case one.Event == "watch":
		process.waiting = append(process.waiting, one.answers)
	default:
		one.refuse("the event is none of start, watch, stop")
	}
}

func (k *keeper) onStart(one asked, process *kept) {
	switch {
	case k.stopping:
		one.refuse("the launcher is shutting down")
		return
	case !processID.MatchString(one.ID):
		one.refuse("the id is not 1 to 32 digits and small letters")
		return
	case process != nil:
		one.refuse("there is a process of this id")
		return
	case len(k.others) >= k.opts.maxProcesses:
		one.refuse(fmt.Sprintf("all %d processes run", k.opts.maxProcesses))
		return
	}
	process, err := k.start(one.ID, filepath.Join(filepath.Dir(k.opts.control), one.ID+processSuffix), "")
	if err != nil {
		one.refuse(err.Error())
		return
	}
	k.others[one.ID] = process
	process.waiting = append(process.waiting, one.answers)
	one.answers <- answer{Event: "started", ID: one.ID}
}

func (a asked) refuse(why string) {
	a.answers <- answer{Event: "refused", ID: a.ID, Message: why}
	close(a.answers)
}

// serve takes connections to the control socket.
func (k *keeper) serve(listener int) {
	for {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
		switch err {
		case nil:
			go k.converse(fd)
		case syscall.EINTR, syscall.ECONNABORTED:
		default:
			logf("cannot accept a connection: %v", err)
			time.Sleep(100 * time.Millisecond) // out of descriptors or memory: both may pass
		}
	}
}

// converse serves one connection: one request, and its answers as they come.
func (k *keeper) converse(fd int) {
	file := os.NewFile(uintptr(fd), "control connection")
	defer file.Close()
	timeout := syscall.NsecToTimeval(int64(requestPatience))
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &timeout); err != nil {
		logf("limit a control connection: %v", err)
		return
	}
	var one request
	if err := json.NewDecoder(io.LimitReader(file, requestBytes)).Decode(&one); err != nil {
		logf("ignored a request that is no JSON: %v", err)
		return
	}
	answers := make(chan answer, 2)
	k.requests <- asked{one, answers}
	for one := range answers {
		if _, err := file.Write(append(encodeJSON(one), '\n')); err != nil {
			logf("answer a request: %v", err) // who asked is gone; what was asked for is done
			return
		}
	}
}

// inherited are the flags that hold for every process.
func (o *options) inherited() []string {
	flags := []string{
		"--max-line-bytes", strconv.Itoa(o.maxLineBytes), "--buffer-bytes", strconv.Itoa(o.bufferBytes),
		"--drain", o.drain.String(), "--stdin-grace", o.stdinGrace.String(), "--term-grace", o.termGrace.String(),
	}
	if o.memoryLimit > 0 {
		flags = append(flags, "--memory-limit", strconv.FormatInt(o.memoryLimit, 10))
	}
	if len(o.plainEnv) > 0 {
		flags = append(flags, "--plain-env", strings.Join(o.plainEnv, ","))
	}
	return flags
}
