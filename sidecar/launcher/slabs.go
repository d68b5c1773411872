package main

import (
	"slices"
	"syscall"
	"unsafe"
)

// slabBytes of addresses are taken at a time; what of them is not touched is no memory. As many that most of it consists
// of whole huge pages (2 MiB), wherever it lies.
const slabBytes = 8 << 20

// slab is memory for many chunks.
type slab struct {
	memory []byte
	free   [][]byte
}

// slabs is where the chunks of large lines come from: memory straight from the system, in huge pages where it has them.
// That of the heap comes in small pages, of which each costs a fault (for 8 MiB 2,048 of them, twice the time of all
// copies), and goes back only with a collection.
type slabs []*slab

// take gives an empty chunk, nil when the system gives no memory.
func (s *slabs) take() []byte {
	for _, one := range *s {
		if n := len(one.free); n > 0 {
			chunk := one.free[n-1]
			one.free = one.free[:n-1]
			return chunk
		}
	}
	memory, err := syscall.Mmap(-1, 0, slabBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	// Refused by systems without huge pages, where small ones do.
	_ = syscall.Madvise(memory, syscall.MADV_HUGEPAGE)
	one := &slab{memory: memory}
	for end := slabBytes; end > 0; end -= chunkBytes { // the last one is handed out first
		one.free = append(one.free, memory[end-chunkBytes:end-chunkBytes:end])
	}
	*s = append(*s, one)
	return s.take()
}

// give takes a chunk back; false: it is none of these.
func (s *slabs) give(chunk []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(chunk)))
	for _, one := range *s {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(one.memory)))
		if at >= start && at < start+slabBytes {
			one.free = append(one.free, chunk[:0])
			return true
		}
	}
	return false
}

// trim gives the slabs of which nothing is in use back to the system.
func (s *slabs) trim() {
	*s = slices.DeleteFunc(*s, func(one *slab) bool {
		unused := len(one.free) == slabBytes/chunkBytes
		if unused {
			if err := syscall.Munmap(one.memory); err != nil {
				logf("return memory: %v", err)
			}
		}
		return unused
	})
}
