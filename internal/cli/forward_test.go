package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
)

// A command that this build does not know is left to the client if that is another one.
func TestUnknownToThisBuild(t *testing.T) {
	for _, args := range [][]string{{"newer"}, {"log", "--newer"}, {"session", "newer", "w.zdb"}} {
		var out, messages bytes.Buffer
		code := RunFor(t.Context(), &serve.Command{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &messages, OtherBuild: true})
		if code != serve.RunUnknown || out.Len()+messages.Len() > 0 {
			t.Errorf("%q: exit code %d: %s%s", args, code, &out, &messages)
		}
	}
}

// canceledReader interrupts the command that reads it.
type canceledReader struct{ cancel func() }

func (r canceledReader) Read([]byte) (int, error) {
	r.cancel()
	select {} // the other end says nothing
}

// A command is run elsewhere when the process that runs it for another one ends, unless
// it has begun with what cannot be done twice. If the client interrupts, it is
// interrupted.
func TestEndOfRunningProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w.zdb")
	db, err := engine.Create(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, c := range []struct {
		name  string
		args  []string
		cause error
		reads bool
		code  int
		said  string
	}{
		{"a command that only reads", []string{"log", dir}, local.ErrGone, false, serve.RunElsewhere, ""},
		{"a command with input", []string{"put", dir, "key"}, local.ErrGone, true, exitFailed, "run it again"},
		{"Ctrl-C of the client", []string{"log", dir}, nil, false, exitInterrupted, "interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			if !c.reads {
				cancel(c.cause)
			}
			var out, messages bytes.Buffer
			code := RunFor(ctx, &serve.Command{
				Args: c.args, Stdin: canceledReader{func() { cancel(c.cause) }}, Stdout: &out, Stderr: &messages, Held: []*engine.DB{db},
			})
			if code != c.code || out.Len() > 0 || !strings.Contains(messages.String(), c.said) || c.said == "" && messages.Len() > 0 {
				t.Errorf("exit code %d: %s%s", code, &out, &messages)
			}
		})
	}
}
