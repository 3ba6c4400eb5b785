package cli

import (
	"fmt"
	"io"
)

// stdoutWriter remembers the first error of writing to standard output. Most
// commands print without looking at errors: a full disk must still fail them.
type stdoutWriter struct {
	w     io.Writer
	err   error
	wrote bool // something was written
}

func (s *stdoutWriter) Write(p []byte) (int, error) {
	s.wrote = s.wrote || len(p) > 0
	n, err := s.w.Write(p)
	if err != nil {
		err = fmt.Errorf("standard output: %w", err)
		if s.err == nil {
			s.err = err
		}
	}
	return n, err
}
