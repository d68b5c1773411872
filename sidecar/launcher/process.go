package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	exitNotFound      = 127
	exitNotExecutable = 126
	// defaultPath is what container runtimes use when the image sets none.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Reasons of an exit, part of the protocol.
const (
	reasonExited           = "Exited"
	reasonSignaled         = "Signaled"
	reasonOutOfMemory      = "OutOfMemory"
	reasonMemoryLimit      = "MemoryLimitExceeded"
	reasonCommandNotFound  = "CommandNotFound"
	reasonPermissionDenied = "PermissionDenied"
	reasonStartFailed      = "StartFailed"
)

// startError says why there is no process.
type startError struct {
	reason  string
	code    int
	message string
}

func (e *startError) Error() string { return e.message }

// process is the running server, leader of its own process group. The descriptors are this side of its pipes.
type process struct {
	pid                   int
	stdin, stdout, stderr int
}

// startProcess starts a command; it inherits environment and working directory. The error is a *startError.
func startProcess(command []string) (*process, error) {
	path, err := lookUp(command[0], os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	var pipes [3][2]int
	for i := range pipes {
		if err := syscall.Pipe2(pipes[i][:], syscall.O_CLOEXEC); err != nil {
			return nil, &startError{reasonStartFailed, exitNotExecutable, fmt.Sprintf("cannot create a pipe: %v", err)}
		}
	}
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{uintptr(pipes[0][0]), uintptr(pipes[1][1]), uintptr(pipes[2][1])},
		// A launcher that is killed leaves no server behind.
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, explainStart(path, err)
	}
	for _, fd := range []int{pipes[0][0], pipes[1][1], pipes[2][1]} {
		if err := syscall.Close(fd); err != nil {
			logf("close the server's end of a pipe: %v", err)
		}
	}
	return &process{pid: pid, stdin: pipes[0][1], stdout: pipes[1][0], stderr: pipes[2][0]}, nil
}

// pipeEnd opens this side of a pipe for waiting in the runtime's poller. The flag belongs to this end: the server's own
// end stays blocking.
func pipeEnd(fd int, name string) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// lookUp finds the file of a command as a shell does.
func lookUp(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, explainAccess(name, checkExecutable(name))
	}
	if path == "" {
		path = defaultPath
	}
	var denied string
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, name)
		if dir == "" || dir == "." {
			candidate = "./" + name
		}
		err := checkExecutable(candidate)
		if err == nil {
			return candidate, nil
		}
		if denied == "" && errors.Is(err, syscall.EACCES) && isFile(candidate) {
			denied = candidate
		}
	}
	if denied != "" {
		return "", explainAccess(denied, syscall.EACCES)
	}
	return "", &startError{reasonCommandNotFound, exitNotFound,
		fmt.Sprintf("command %q not found in PATH (%s)", name, path)}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// checkExecutable gives EACCES for what is there but cannot be executed.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return syscall.EISDIR
	}
	const executable = 1
	return syscall.Access(path, executable)
}

func explainAccess(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return &startError{reasonCommandNotFound, exitNotFound, fmt.Sprintf("command %q does not exist", path)}
	case errors.Is(err, syscall.EISDIR):
		return &startError{reasonPermissionDenied, exitNotExecutable, fmt.Sprintf("command %q is a directory", path)}
	case errors.Is(err, syscall.EACCES):
		return &startError{reasonPermissionDenied, exitNotExecutable, fmt.Sprintf("command %q is not executable", path)}
	}
	return &startError{reasonStartFailed, exitNotExecutable, fmt.Sprintf("command %q: %v", path, err)}
}

// explainStart tells what a failed exec of an existing executable means.
func explainStart(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return &startError{reasonCommandNotFound, exitNotFound,
			fmt.Sprintf("command %q exists, but the interpreter that it names does not", path)}
	case errors.Is(err, syscall.ENOEXEC):
		return &startError{reasonStartFailed, exitNotExecutable,
			fmt.Sprintf("command %q is built for another machine, or a script without a #! line", path)}
	case errors.Is(err, syscall.EACCES):
		return &startError{reasonPermissionDenied, exitNotExecutable,
			fmt.Sprintf("command %q or its interpreter may not be executed here", path)}
	}
	return &startError{reasonStartFailed, exitNotExecutable, fmt.Sprintf("cannot start command %q: %v", path, err)}
}
