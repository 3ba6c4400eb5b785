package dirkv

import (
	"context"

	"golang.org/x/sys/unix"
)

// syncAll flushes the file system that the base directory is on.
func (s *Store) syncAll(context.Context) error {
	f, err := s.src.slow.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
