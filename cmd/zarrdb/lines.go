package main

import (
	"bufio"
	"io"
)

// lineWriter buffers lines; listings can be millions of them.
type lineWriter struct{ w *bufio.Writer }

func newLineWriter(w io.Writer) *lineWriter { return &lineWriter{bufio.NewWriterSize(w, 64<<10)} }

func (l *lineWriter) line(s string) error {
	if _, err := l.w.WriteString(s); err != nil {
		return err
	}
	return l.w.WriteByte('\n')
}

func (l *lineWriter) flush() error { return l.w.Flush() }
