package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

const defaultTerminationLog = "/dev/termination-log"

// options are the settings of one run.
type options struct {
	socket         string
	maxLineBytes   int
	bufferBytes    int
	drain          time.Duration
	stdinGrace     time.Duration
	termGrace      time.Duration
	terminationLog string
	plainEnv       []string
	control        string // socket on which more processes are asked for; empty: none
	maxProcesses   int
	memoryLimit    int64         // bytes that a process and its descendants may hold; 0: no limit
	steady         time.Duration // the first process is started again if it ran for so long
	parent         int           // process whose end is the end of this one; 0: none
	command        []string
}

// parseOptions reads the arguments of "run".
func parseOptions(args []string) (options, error) {
	var o options
	var plain string
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.socket, "socket", "", "`path` of the Unix socket to serve")
	flags.IntVar(&o.maxLineBytes, "max-line-bytes", 16<<20, "longest line that is forwarded")
	flags.IntVar(&o.bufferBytes, "buffer-bytes", 16<<20, "lines held while nobody reads them")
	flags.DurationVar(&o.drain, "drain", 6*time.Second, "how long running calls may go on after SIGTERM")
	flags.DurationVar(&o.stdinGrace, "stdin-grace", time.Second, "how long the server may take to end after its stdin closed")
	flags.DurationVar(&o.termGrace, "term-grace", 1500*time.Millisecond, "how long it may take after SIGTERM")
	flags.StringVar(&o.terminationLog, "termination-log", defaultTerminationLog, "`file` for the termination message; empty: none")
	flags.StringVar(&plain, "plain-env", "", "comma separated `names` of environment variables that are not secret")
	flags.IntVar(&o.parent, "die-with-parent", 0, "`pid` of the process that started this one: when it ends, so does this one; 0: none")
	flags.StringVar(&o.control, "control", "", "`path` of a socket on which more processes of the command are asked for; empty: none")
	flags.IntVar(&o.maxProcesses, "max-processes", 4, "how many of them may run at once")
	flags.Int64Var(&o.memoryLimit, "memory-limit", 0, "`bytes` that each of them, and the first one, may hold with all it started; 0: no limit")
	flags.DurationVar(&o.steady, "steady", time.Minute, "how long the first process has to have run to be started again when it ends")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.command = flags.Args()
	if plain != "" {
		o.plainEnv = strings.Split(plain, ",")
	}
	return o, o.check()
}

func (o *options) check() error {
	switch {
	case o.socket == "":
		return errors.New("--socket is missing")
	case len(o.command) == 0 || o.command[0] == "":
		return errors.New("no command given: mcp-launcher run --socket PATH -- COMMAND [ARGUMENT...]")
	case o.maxLineBytes < 1 || o.bufferBytes < 1:
		return fmt.Errorf("--max-line-bytes and --buffer-bytes must be positive")
	case o.maxProcesses < 1:
		return errors.New("--max-processes must be positive")
	case o.memoryLimit < 0:
		return errors.New("--memory-limit must not be negative")
	case o.memoryLimit > 0 && o.control == "" && o.parent == 0: // with --die-with-parent the parent watches
		return errors.New("--memory-limit needs --control: without it there is one process, and the container's limit is its own")
	case o.parent < 0:
		return errors.New("--die-with-parent must not be negative")
	case o.drain < 0 || o.steady < 0 || o.stdinGrace < 0 || o.termGrace < 0:
		return fmt.Errorf("durations must not be negative")
	}
	return nil
}
