package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// run runs a command line with the descriptors of the client. Without any, the command has
// no standard input, and its output is in the reply.
func (c *conn) run(ctx context.Context, f *wire.Frame) error {
	var in wire.Run
	if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return err
	}
	cmd := &serve.Command{Args: in.Args, Dir: in.Dir, Env: in.Env, Passed: in.Passed, OtherBuild: c.version != c.s.o.Version}
	half := int(c.s.o.MaxBody / 2)
	out, messages := limitedBuffer{left: half}, limitedBuffer{left: half}
	switch len(f.Files) {
	case 0:
		cmd.Stdin, cmd.Stdout, cmd.Stderr = noInput{}, &out, &messages
	case 3:
		cmd.Stdin, cmd.Stdout, cmd.Stderr = f.Files[0], f.Files[1], f.Files[2]
	default:
		return fmt.Errorf("%w: a command comes with 3 descriptors or none, not %d", ErrRequest, len(f.Files))
	}
	if _, err := c.s.identity(); err != nil {
		return err
	}
	code, err := c.s.t.Run(ctx, c.who, cmd)
	if err != nil {
		return err
	}
	n := int64(len(out.b) + len(messages.b))
	c.bodies.change(0, n)
	defer c.bodies.give(n)
	meta, err := json.Marshal(wire.Exit{Code: code, Stdout: len(out.b)})
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Meta: meta, Body: append(out.b, messages.b...)})
}

// noInput is the standard input of a command that came without descriptors.
type noInput struct{}

func (noInput) Read([]byte) (int, error) {
	return 0, errors.New("another process has the database open and runs this command without its standard input; name a file, or end that process")
}

// limitedBuffer keeps what is written to it, up to a limit. Writes beyond that fail.
type limitedBuffer struct {
	b    []byte
	left int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, errors.New("too long for the reply of the process that has the database open; write it to a file")
	}
	l.left -= len(p)
	l.b = append(l.b, p...)
	return len(p), nil
}
