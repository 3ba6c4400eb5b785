//go:build unix

package web

import "syscall"

// descriptors is how many files this process may open at a time, 0 if that is not known.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int(min(uint64(l.Cur), 1<<20))
}
