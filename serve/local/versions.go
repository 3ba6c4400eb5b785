package local

import (
	"encoding/json"
	"iter"

	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// raw is a reply that is parsed later.
type raw = json.RawMessage

// pages yields changes page by page.
func pages(page func(skip int) (wire.Changes, error)) iter.Seq2[txn.Change, error] {
	return func(yield func(txn.Change, error) bool) {
		for skip, more := 0, true; more; {
			out, err := page(skip)
			if err != nil {
				yield(txn.Change{}, err)
				return
			}
			for i := range out.Changes {
				if !yield(changeIn(&out.Changes[i]), nil) {
					return
				}
			}
			skip += len(out.Changes)
			more = out.More && len(out.Changes) > 0
		}
	}
}
