package cli

import "fmt"

// stdoutWriter remembers the first error of writing to standard output. Most
// commands print without looking at errors: a full disk must still fail them.
type stdoutWriter struct {
	w   *blockingWriter
	err error
}

func (s *stdoutWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	return n, s.noted(err)
}

// flush writes the buffer.
func (s *stdoutWriter) flush() error { return s.noted(s.w.flush()) }

func (s *stdoutWriter) noted(err error) error {
	if err != nil {
		err = fmt.Errorf("standard output: %w", err)
		if s.err == nil {
			s.err = err
		}
	}
	return err
}
