package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// pipe is an os.Pipe of a test.
func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// A command reads and writes the files of the client.
func TestRun(t *testing.T) {
	_, c := served(t, nil, nil)
	in, toIn := pipe(t)
	fromOut, out := pipe(t)
	fromErr, stderr := pipe(t)
	io.WriteString(toIn, "hello")
	toIn.Close()
	code, err := c.Run(bg, Command{Args: []string{"upper"}, Dir: "/somewhere", Env: []string{"A=b"}, Stdin: in, Stdout: out, Stderr: stderr})
	if code != 7 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	out.Close()
	stderr.Close()
	b, err := io.ReadAll(fromOut)
	if string(b) != "HELLO" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if b, err = io.ReadAll(fromErr); string(b) != "/somewhere [A=b] 1" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	// No other process has the descriptors: the end of the file was seen.
}

// The command is cancelled when the context ends, and its exit code says so.
func TestRunCancelled(t *testing.T) {
	_, c := served(t, nil, nil)
	fromOut, out := pipe(t)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	done := make(chan error, 1)
	var code int
	go func() {
		var err error
		code, err = c.Run(ctx, Command{Args: []string{"wait"}, Stdout: out})
		done <- err
	}()
	if got := lineOf(fromOut); got != "waiting" {
		t.Fatal(got)
	}
	cancel()
	if got := lineOf(fromOut); got != "cancelled" {
		t.Error(got)
	}
	if err := <-done; err != nil || code != 130 {
		t.Errorf("%d, %v", code, err)
	}
}

// A client that is gone takes its commands with it.
func TestRunClientGone(t *testing.T) {
	_, c := served(t, nil, nil)
	fromOut, out := pipe(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(bg, Command{Args: []string{"wait"}, Stdout: out})
		done <- err
	}()
	if got := lineOf(fromOut); got != "waiting" {
		t.Fatal(got)
	}
	c.Close()
	if got := lineOf(fromOut); got != "cancelled" {
		t.Error(got)
	}
	if err := <-done; !errors.Is(err, txn.ErrClosed) {
		t.Error(err)
	}
}

// A server that ends in order ends commands, and says how they ended.
func TestRunServerEnds(t *testing.T) {
	h, c := served(t, &Options{Grace: 50 * time.Millisecond}, nil)
	fromOut, out := pipe(t)
	done, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Run(bg, Command{Args: []string{"wait"}, Stdout: out})
		done <- err
	}()
	if got := lineOf(fromOut); got != "waiting" {
		t.Fatal(got)
	}
	begun := time.Now()
	go func() { ended <- h.end() }()
	if got := lineOf(fromOut); got != "cancelled" {
		t.Error(got)
	}
	if took, other := time.Since(begun), (*Options)(nil).withDefaults().Grace; took >= other {
		t.Errorf("it took %v, as with the default of %v", took, other)
	}
	if err := errors.Join(<-done, <-ended); err != nil {
		t.Error(err)
	}
}

// Another build runs the commands that it knows.
func TestRunOtherBuild(t *testing.T) {
	_, c := served(t, &Options{Version: "older"}, nil)
	if code, err := c.Run(bg, Command{Args: []string{"other"}}); code != 2 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	if _, err := c.Run(bg, Command{Args: []string{"newer"}}); !errors.Is(err, ErrVersion) || !contains(err, "older") {
		t.Error(err)
	}
}

// The environment and the files of a command are given to no other user.
func TestRunOtherUser(t *testing.T) {
	_, c := served(t, nil, nil)
	if c.l.other {
		t.Fatal("the server is taken for another user's")
	}
	c.l.other = true
	if _, err := c.Run(bg, Command{Args: []string{"upper"}}); !errors.Is(err, serve.ErrDenied) {
		t.Error(err)
	}
}

// A command that panics fails alone: the process serves on.
func TestRunPanics(t *testing.T) {
	_, c := served(t, nil, nil)
	var remote *RemoteError
	if _, err := c.Run(bg, Command{Args: []string{"panic"}}); !errors.As(err, &remote) || remote.Code != "internal" || !contains(err, "panic: of a command") {
		t.Error(err)
	}
	if code, err := c.Run(bg, Command{Args: []string{"other"}}); code != 2 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

// Where no descriptors are passed the output comes with the reply, and there is no input.
func TestRunWithoutDescriptors(t *testing.T) {
	_, c := served(t, nil, nil)
	var out, messages bytes.Buffer
	if _, err := c.Run(bg, Command{Args: []string{"where"}, Stdout: &out}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("it was not asked for a buffer: %v", err)
	}
	code, err := c.Run(bg, Command{Args: []string{"upper"}, Dir: "/somewhere", Env: []string{"A=b"}, Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &messages, Buffered: true})
	if code != 1 || err != nil || out.Len() != 0 || !strings.Contains(messages.String(), "without its standard input") {
		t.Errorf("%d, %v, %q, %q", code, err, &out, &messages)
	}
	messages.Reset()
	code, err = c.Run(bg, Command{Args: []string{"where"}, Dir: "/somewhere", Env: []string{"A=b"}, Stdout: &out, Stderr: &messages, Buffered: true})
	if code != 7 || err != nil || out.String() != "/somewhere" || messages.String() != "[A=b]" {
		t.Errorf("%d, %v, %q, %q", code, err, &out, &messages)
	}
}
