package remote

import (
	"context"

	"github.com/zarrdb/zarrdb/kv/gather"
)

// Each calls fn for 0 to n-1, up to Options.Parallel calls at a time, and
// returns the first error. After an error no further call begins, and running
// calls are canceled.
func (c *Client) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	return gather.Each(ctx, c.o.Parallel, n, fn)
}
