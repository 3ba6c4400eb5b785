package dirkv

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in one folder. There may be nothing at b; then there
// is nothing at a afterwards.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	// Some file systems cannot, and some kernels say so with ENOSYS.
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return renames(a, b)
	}
	return err
}
