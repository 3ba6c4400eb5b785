package local

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// run runs a command line with the descriptors of the client.
func (c *conn) run(ctx context.Context, f *wire.Frame) error {
	var in wire.Run
	if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return err
	}
	if len(f.Files) != 3 {
		return fmt.Errorf("%w: a command comes with 3 descriptors, not %d", ErrRequest, len(f.Files))
	}
	code, err := c.s.t.Run(ctx, c.who, &serve.Command{
		Args: in.Args, Dir: in.Dir, Env: in.Env, Passed: in.Passed, OtherBuild: c.version != c.s.o.Version,
		Stdin: f.Files[0], Stdout: f.Files[1], Stderr: f.Files[2],
	})
	if err != nil {
		return err
	}
	return c.answer(f, wire.Exit{Code: code})
}
