package cli

import (
	"bufio"
	"io"
)

// lineWriter buffers lines; listings can be millions of them.
type lineWriter struct {
	w *bufio.Writer
	// null ends texts with a zero byte, and does not escape them.
	null bool
}

func newLineWriter(w io.Writer, null bool) *lineWriter {
	return &lineWriter{bufio.NewWriterSize(w, 64<<10), null}
}

func (l *lineWriter) line(s string) error {
	end := byte('\n')
	if l.null {
		end = 0
	} else {
		s = escape(s, "")
	}
	if _, err := l.w.WriteString(s); err != nil {
		return err
	}
	return l.w.WriteByte(end)
}

func (l *lineWriter) flush() error { return l.w.Flush() }
