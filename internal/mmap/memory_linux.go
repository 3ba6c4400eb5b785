package mmap

import "golang.org/x/sys/unix"

// preferHuge is advice: a kernel without huge pages returns an error, which changes nothing.
func preferHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
