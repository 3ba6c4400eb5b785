package source

import (
	"bytes"
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/kv"
)

// isCopyAlone reports whether .zmetadata is the only metadata of a directory, and
// belongs to a v2 store, not to a parquet reference set.
func isCopyAlone(e Evidence) bool {
	doc := e.File(names.V2Metadata)
	return !e.has(names.V2Array) && !e.has(names.V2Group) && !e.has(names.V3) &&
		bytes.Contains(doc, []byte(`"zarr_consolidated_format"`)) && !bytes.Contains(doc, []byte(`"record_size"`))
}

// mayHaveCopies reports whether a directory may have consolidated metadata.
func mayHaveCopies(e Evidence) bool {
	doc := e.File(names.V3)
	return e.has(names.V2Metadata) || len(doc) == headBytes || bytes.Contains(doc, []byte(policy.InlineCopy))
}

// lookAtCopy reads the whole .zmetadata if no other document identifies the directory,
// and only the beginning was read before.
func lookAtCopy(ctx context.Context, ev Evidence, below kv.Reader) error {
	if ev.has(names.V2Array) || ev.has(names.V2Group) || ev.has(names.V3) || len(ev.heads[names.V2Metadata]) < headBytes {
		return nil
	}
	doc, err := below.Get(ctx, names.V2Metadata, kv.AtMost(policy.MaxDocument))
	if err != nil {
		return fmt.Errorf("%s: %w", names.V2Metadata, err)
	}
	ev.heads[names.V2Metadata] = doc
	return nil
}
