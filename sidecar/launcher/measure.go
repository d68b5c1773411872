package main

import (
	"bytes"
	"maps"
	"strconv"
	"sync"
	"syscall"
)

// The largest files read here have some 1.5 KiB.
var statusBuffers = sync.Pool{New: func() any { return new([4096]byte) }}

// measure gives what the descendants of each root hold, in bytes; the roots themselves do not count. Pages that a parent
// and its child share until one writes to them count for both in the quick way: above the limit all is counted exactly.
func measure(roots []int, limit int64) map[int]int64 {
	facts := processes()
	pair(facts)
	found := families(facts, roots)
	held := weigh(found, func(one processFacts) int64 { return one.held })
	for root := range found {
		if held[root] <= limit {
			delete(found, root)
		}
	}
	maps.Copy(held, weigh(found, exactly))
	return held
}

// processes reads the facts of all processes that are seen from here. One that ends meanwhile is left out.
func processes() []processFacts {
	pids := processIDs()
	found := make([]processFacts, 0, len(pids))
	buffer := statusBuffers.Get().(*[4096]byte)
	defer statusBuffers.Put(buffer)
	for _, pid := range pids {
		text := readStart("/proc/"+strconv.Itoa(pid)+"/status", buffer[:])
		if parent, known := field(text, "PPid:"); known {
			found = append(found, factsOf(pid, int(parent), text))
		}
	}
	return found
}

// factsOf reads /proc/PID/status. The code of programs and libraries is not held by a process: others share it, and the
// kernel drops it when memory gets short.
func factsOf(pid, parent int, status []byte) processFacts {
	kib := func(name string) int64 {
		number, _ := field(status, name) // a process that has ended has none
		return number
	}
	return processFacts{
		pid: pid, parent: parent, held: (kib("RssAnon:") + kib("RssShmem:")) << 10,
		shape: [2]int64{kib("VmSize:"), kib("RssFile:")},
	}
}

// exactly is the same, with each page divided among the processes that map it; as it was where the kernel does not tell.
func exactly(one processFacts) int64 {
	buffer := statusBuffers.Get().(*[4096]byte)
	defer statusBuffers.Put(buffer)
	text := readStart("/proc/"+strconv.Itoa(one.pid)+"/smaps_rollup", buffer[:])
	anonymous, known := field(text, "Pss_Anon:")
	shared, _ := field(text, "Pss_Shmem:")
	if !known { // it forbids to be looked into, or the kernel is older than 5.4
		return one.held
	}
	return (anonymous + shared) << 10
}

// field reads a number from lines of the form "Name:  123 kB"; a name starts its line.
func field(text []byte, name string) (int64, bool) {
	at := bytes.Index(text, append([]byte{'\n'}, name...))
	if at < 0 {
		return 0, false
	}
	text = bytes.TrimLeft(text[at+1+len(name):], " \t")
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	number, err := strconv.ParseInt(string(text[:end]), 10, 64)
	return number, err == nil
}

// readStart reads the beginning of a file, as much as the buffer takes; nothing of one that is gone.
func readStart(path string, buffer []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	count, err := syscall.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:count]
}
