package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/txn"
)

// Salvage makes a database with a lost or damaged index one that can be opened,
// in place or, if to is not "", as a new database; see [txn.Salvage]. A to that
// is, holds or lies in a database is ErrOverlap, and a URL is [ErrName]. Options may be nil.
func Salvage(ctx context.Context, dir, to string, o *Options, progress func(txn.CheckProgress)) (*txn.SalvageReport, error) {
	opts := o.withDefaults()
	if to != "" && opts.FS == nil {
		if err := checkNew(to); err != nil {
			return nil, fmt.Errorf("salvage to %w", err)
		}
		if err := extent.Separate(extent.Extent{Path: to}, extent.Extent{Path: dir}); err != nil {
			return nil, fmt.Errorf("salvage: %w", err)
		}
	}
	env := opts.env()
	so := txn.SalvageOptions{Options: opts.txn(ctx, env.Resolver("", nil)), To: to, Progress: progress}
	so.Bucket = openBucket(env, dir)
	r, err := txn.Salvage(ctx, dir, so)
	return r, errors.Join(err, env.Close())
}
