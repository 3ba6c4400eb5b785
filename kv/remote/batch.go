package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
)

// GetMany implements [kv.BatchReader] with parallel requests.
func (o *Objects) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	out := make([][]byte, len(reqs))
	err := o.c.Each(ctx, len(reqs), func(ctx context.Context, i int) error {
		b, err := o.Get(ctx, reqs[i].Key, reqs[i].Range)
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get %q: %w", reqs[i].Key, err)
		}
		out[i] = b
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
