package serve

import (
	"context"

	"github.com/zarrdb/zarrdb/txn"
)

// Answer carries out the request of a peer of a database; see [txn.DB.Answer]. Requests
// that may change the database are for administrators.
func (t *Table) Answer(ctx context.Context, who *Principal, name, request string, in []byte, progress func(report []byte)) ([]byte, error) {
	changes, open := txn.Changes(request, in), t.Database
	if changes {
		open = t.Writable
		if err := who.MayAdminister("ask for " + Clip(request)); err != nil {
			return nil, err
		}
	}
	db, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	out, err := db.Versions().Answer(ctx, request, in, progress)
	if err == nil && changes {
		t.o.Log.InfoContext(ctx, request, "database", name, "who", who.Name)
	}
	return out, err
}
