package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// PackFile returns the pack file in which the bytes of a native value lie, and
// the offset where they begin, for programs that read packs without this one.
// Collecting garbage may move bytes to another file; a hard link to this one
// keeps them. Values that are not native are an error.
func (s *Snapshot) PackFile(ctx context.Context, key string) (path string, offset int64, err error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return "", 0, err
	}
	if v.Kind != tree.KindNative {
		return "", 0, fmt.Errorf("txn: %s: it is %v, not in a pack", key, v.Kind)
	}
	if s.db.away != nil {
		return "", 0, fmt.Errorf("%s: %w in a lazy clone: the bytes may be in %s, and what was fetched may be removed", key, errors.ErrUnsupported, s.db.away.At.URL)
	}
	return s.db.packs.Locate(catalog.AddressOf(v))
}
