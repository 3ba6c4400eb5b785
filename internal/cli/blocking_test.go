package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/zarrdb/zarrdb/internal/must"
)

// countedWriter counts the calls of Write.
type countedWriter struct {
	bytes.Buffer
	calls int
}

func (w *countedWriter) Write(p []byte) (int, error) {
	w.calls++
	return w.Buffer.Write(p)
}

func TestLinesAreWrittenTogether(t *testing.T) {
	const lines = 100_000
	var to countedWriter
	w := &blockingWriter{blocking: blocking{ctx: t.Context()}, w: &to}
	for range lines {
		must.Get(w.Write([]byte("a line\n")))(t)
	}
	must.Do(t, w.flush())
	if to.String() != strings.Repeat("a line\n", lines) || to.calls > lines/100 {
		t.Errorf("%d bytes in %d writes of %d lines", to.Len(), to.calls, lines)
	}
}

func TestLineIsWrittenWithoutAnother(t *testing.T) {
	r, end := make(chan string), make(chan struct{})
	defer close(end)
	w := &blockingWriter{blocking: blocking{ctx: t.Context()}, w: writerFunc(func(p []byte) (int, error) {
		select {
		case r <- string(p):
		case <-end:
		}
		return len(p), nil
	})}
	for range 2 {
		must.Get(w.Write([]byte("listening\n")))(t)
		if got := <-r; got != "listening\n" {
			t.Errorf("%q", got)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestFullDiskFailsLaterLines(t *testing.T) {
	out := &stdoutWriter{w: &blockingWriter{blocking: blocking{ctx: t.Context()}, w: fullWriter{}}}
	for range blockingSize { // more than is collected
		_, _ = out.Write([]byte("x\n"))
	}
	if err := out.flush(); !errors.Is(err, errFull) || !errors.Is(out.err, errFull) {
		t.Errorf("%v, %v", err, out.err)
	}
}

func TestNotesComeAfterWhatWasSaid(t *testing.T) {
	var both bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&stdoutWriter{w: &blockingWriter{blocking: blocking{ctx: context.Background()}, w: &both}})
	cmd.SetErr(&both)
	say(cmd, "said")
	note(cmd, "noted")
	if got := both.String(); got != "said\nnoted\n" {
		t.Errorf("%q", got)
	}
}
