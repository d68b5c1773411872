package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"
)

// calmPercent is when garbage is collected, as of GOGC: what little is made ten times a second need not grow to 4 MiB.
const calmPercent = 25

// census reads what processes hold. Nothing else runs in a keeper at rest, so it is all but free of garbage, and of the
// runtime's bookkeeping of system calls (see rawIO): none of these waits for anything.
type census struct {
	proc    uintptr // descriptor of /proc
	facts   []processFacts
	entries [8192]byte
	text    [4096]byte // the files that are read have some 1.5 KiB
	path    []byte
}

func newCensus() (*census, error) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, errors.New("--memory-limit needs a /proc that shows the processes of this namespace")
	}
	fd, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	debug.SetGCPercent(calmPercent)
	return &census{proc: uintptr(fd)}, nil
}

// measure gives what the descendants of each root hold, in bytes; the roots themselves do not count. Pages that a parent
// and its child share until one writes to them count for both in the quick way: above the limit all is counted exactly.
func (c *census) measure(roots []int, limit int64) map[int]int64 {
	c.take()
	relate(c.facts, roots)
	held := weigh(c.facts, roots, func(one processFacts) int64 { return one.held })
	var above []int
	for _, root := range roots {
		if held[root] > limit {
			above = append(above, root)
		}
	}
	maps.Copy(held, weigh(c.facts, above, c.exactly))
	return held
}

// take reads the facts of all processes that are seen from here. One that ends meanwhile is left out.
func (c *census) take() {
	c.facts = c.facts[:0]
	syscall.RawSyscall(syscall.SYS_LSEEK, c.proc, 0, 0)
	for {
		count, err := rawIO(syscall.SYS_GETDENTS64, c.proc, c.entries[:])
		if err != nil || count == 0 {
			return
		}
		for rest := c.entries[:count]; len(rest) > 0; {
			// struct linux_dirent64: two numbers of 8 bytes, the length of the entry, a type, and the name with a NUL.
			entry := rest[:binary.NativeEndian.Uint16(rest[16:])]
			rest = rest[len(entry):]
			pid, isProcess := leadingNumber(entry[19:])
			if !isProcess {
				continue
			}
			status := c.read(int(pid), "/status")
			if parent, known := field(status, "\nPPid:"); known {
				c.facts = append(c.facts, factsOf(int(pid), int(parent), status))
			}
		}
	}
}

// exactly is what a process holds, each page divided among the processes that map it; as it was where the kernel does not
// tell: the process forbids to be looked into, or the kernel is older than 5.4.
func (c *census) exactly(one processFacts) int64 {
	text := c.read(one.pid, "/smaps_rollup")
	anonymous, known := field(text, "\nPss_Anon:")
	shared, _ := field(text, "\nPss_Shmem:")
	if !known {
		return one.held
	}
	return (anonymous + shared) << 10
}

// read gives the beginning of a process's file until the next call; nothing of a process that is gone.
func (c *census) read(pid int, name string) []byte {
	c.path = append(append(strconv.AppendInt(c.path[:0], int64(pid), 10), name...), 0)
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, c.proc, uintptr(unsafe.Pointer(unsafe.SliceData(c.path))),
		syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return nil
	}
	count, err := rawIO(syscall.SYS_READ, fd, c.text[:])
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	if err != nil {
		return nil
	}
	return c.text[:count]
}

// factsOf reads /proc/PID/status. The code of programs and libraries is not held by a process: others share it, and the
// kernel drops it when memory gets short.
func factsOf(pid, parent int, status []byte) processFacts {
	// A process that has ended has none of these.
	anonymous, _ := field(status, "\nRssAnon:")
	shared, _ := field(status, "\nRssShmem:")
	size, _ := field(status, "\nVmSize:")
	files, _ := field(status, "\nRssFile:")
	return processFacts{pid: pid, parent: parent, held: (anonymous + shared) << 10, shape: [2]int64{size, files}}
}

// field reads a number from lines of the form "Name:  123 kB"; the name is given with the newline before it.
func field(text []byte, name string) (int64, bool) {
	at := bytes.Index(text, []byte(name))
	if at < 0 {
		return 0, false
	}
	return leadingNumber(bytes.TrimLeft(text[at+len(name):], " \t"))
}

// leadingNumber reads the digits with which a text begins.
func leadingNumber(text []byte) (number int64, found bool) {
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			break
		}
		number, found = 10*number+int64(digit-'0'), true
	}
	return number, found
}
