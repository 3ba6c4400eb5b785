package local

import (
	"iter"

	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// changePage is the part of a sequence that was asked for.
func changePage(in *wire.Diff, all iter.Seq2[txn.Change, error]) (*wire.Changes, error) {
	out, n, size := &wire.Changes{Changes: []wire.Change{}}, 0, 0
	for change, err := range all {
		if err != nil {
			return nil, err
		}
		if n++; n <= in.Skip {
			continue
		}
		if len(out.Changes) >= pageLimit(in.Limit) || size > maxPageSize {
			out.More = true
			break
		}
		out.Changes = append(out.Changes, changeOut(&change))
		size += 300 + len(change.Key)
	}
	return out, nil
}
