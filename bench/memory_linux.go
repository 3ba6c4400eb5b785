package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// memory returns n bytes that begin at a page, on huge pages if the system has
// them: other programs are measured with arrays of NumPy, which asks for the
// same.
func memory(n int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) // a kernel without them says so
	return b, nil
}

// release gives back what memory returned.
func release(b []byte) error { return syscall.Munmap(b) }

// resident is the memory that the process has, in bytes; 0 if it is not known.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// mapped returns the first n bytes of a file, which the page cache has, and how to let go of
// them.
func mapped(name string, n int) (data []byte, end func()) {
	f := must(os.Open(name))
	defer f.Close()
	data = must(syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ, syscall.MAP_SHARED|syscall.MAP_POPULATE))
	return data, func() { check(syscall.Munmap(data)) }
}

// private is the memory in bytes that a process has alone, not in files; 0 if it is not known.
func private(pid int) (n int64) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "RssAnon:" {
			n, _ = strconv.ParseInt(fields[1], 10, 64)
		}
	}
	return n << 10
}
