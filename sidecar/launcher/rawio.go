package main

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// rawIO is one read, write or send on a descriptor that does not block. It goes past the runtime's bookkeeping of system
// calls, which is meant for those that block: that wakes the runtime's watching thread with the first call after an idle
// moment, and the thread then looks every 20 µs whether something is stuck. With a few lines at a time on their way this
// was half of what the launcher cost (10 of 20 µs a call at 16 clients), and its wakes took the core from the server.
//
// Threads that do not interrupt others at all (SCHED_BATCH) cost even less, but on a node whose cores are busy every line
// then waited for the end of somebody else's time slice, 3 ms and more.
func rawIO(call, fd uintptr, p []byte) (int, error) {
	for {
		// The flags are those of sendto; the other calls have three arguments.
		n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// rawReader reads from a descriptor that does not block, as its os.File does; only the call itself is a rawIO.
type rawReader struct {
	raw syscall.RawConn
	// Argument and result of attempt; fields, so that a read allocates nothing.
	data []byte
	n    int
	err  error
	try  func(fd uintptr) bool
}

func newRawReader(file *os.File) (*rawReader, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &rawReader{raw: raw}
	r.try = r.attempt
	return r, nil
}

// attempt reads what is there; false: nothing is, and the runtime's poller says when to try again.
func (r *rawReader) attempt(fd uintptr) bool {
	r.n, r.err = rawIO(syscall.SYS_READ, fd, r.data)
	return r.err != syscall.EAGAIN
}

// Read waits for bytes.
func (r *rawReader) Read(p []byte) (int, error) {
	r.data = p
	if err := r.raw.Read(r.try); err != nil {
		return 0, err
	}
	if r.n == 0 && r.err == nil {
		return 0, io.EOF
	}
	return r.n, r.err
}
