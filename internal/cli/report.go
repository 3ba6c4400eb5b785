package cli

import (
	"context"

	"github.com/zarrdb/zarrdb/serve"
)

// Report runs a command line that answers a question of a client of a server; see
// [serve.Options]. It returns the exit code.
func Report(ctx context.Context, c *serve.Command) int {
	ctx = context.WithValue(ctx, servedKey{}, served{held: c.Held, view: c.View, node: c.Path})
	a := attempt(ctx, c.Args, c.Stdin, c.Stdout, c.Stderr)
	return a.report(ctx, c.Stderr)
}
