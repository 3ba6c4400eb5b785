package main

import "syscall"

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
