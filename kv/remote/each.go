package remote

import (
	"context"

	"github.com/zarrdb/zarrdb/kv/gather"
)

// Each calls fn for 0 to n-1, as many at a time as Options.Parallel says, and
// returns the first error. After one, no further call begins, and those under
// way are canceled.
func (c *Client) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	return gather.Each(ctx, c.o.Parallel, n, fn)
}
