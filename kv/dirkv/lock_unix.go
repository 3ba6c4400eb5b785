//go:build unix && !aix

package dirkv

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openLocked opens a file, which is made if it is missing, with an exclusive lock.
func openLocked(root *os.Root, _, rel string) (*os.File, error) {
	f, err := root.OpenFile(rel, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, err
	}
	return f, nil
}
