package txn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// FetchPayloadsOptions say what [DB.FetchPayloads] fetches.
type FetchPayloadsOptions struct {
	Commit CommitID
	// Path is a node, of which all that is at or below it is meant; "" is all.
	Path string
	// Progress, if not nil, is called now and then with the report so far. Calls do not overlap.
	Progress func(FetchPayloadsReport) `json:"-"`
}

// FetchPayloadsReport says what was fetched.
type FetchPayloadsReport struct {
	Payloads, Bytes int64 // of the part that is here now
	Total           int64 // bytes of the part
	Fetched         int64 // bytes that were not here before
	// Requests to the remote, and the bytes that it sent.
	Requests, Received int64
}

// FetchPayloads brings all payloads of a part of a version here, with ranges of up to 8 MiB that neighbours share, and compares them
// with their hashes. What is here is not fetched again, so a call that was interrupted can be repeated. In a database that is no
// lazy clone it compares alone. The error is [kv.ErrTooLarge] if the limit of what is fetched is too small for the part.
func (db *DB) FetchPayloads(ctx context.Context, o FetchPayloadsOptions) (*FetchPayloadsReport, error) {
	return cared(ctx, db, "fetch payloads", o, o.Progress, nil, db.fetchPayloads)
}

func (db *DB) answerFetchPayloads(ctx context.Context, o FetchPayloadsOptions, report func(any)) (none, error) {
	t := careTeller[FetchPayloadsReport, FetchPayloadsReport]{report: report}
	o.Progress = t.onProgress
	return t.end(db.FetchPayloads(ctx, o))
}

// fetchBatch bounds the payloads and bytes that are looked for, fetched and compared at a time.
const fetchBatch, fetchBatchBytes = 1 << 16, 1 << 30

func (db *DB) fetchPayloads(ctx context.Context, o FetchPayloadsOptions) (_ *FetchPayloadsReport, err error) {
	defer wrap(&err, "fetch payloads")
	s, err := db.Snapshot(ctx, o.Commit)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r := &FetchPayloadsReport{}
	var before bucket.Counts
	if db.away != nil {
		if db.opts.ReadOnly {
			return nil, db.opts.readOnly()
		}
		before = db.away.Store.Count()
	}
	prefix := ""
	if o.Path != "" {
		prefix = o.Path + "/"
	}
	each := func(fn func(away.Payload) error) error {
		one := func(v tree.Value) error {
			if v.Kind != tree.KindNative {
				return nil
			}
			return fn(away.Payload{At: catalog.AddressOf(v), Sum: v.Sum})
		}
		found := prefix == ""
		for it, err := range db.space.Scan(ctx, s.commit.Root, prefix) {
			if err == nil {
				found, err = true, one(it.Value)
			}
			if err != nil {
				return err
			}
		}
		if prefix == "" {
			return nil
		}
		v, err := s.lookup(ctx, o.Path)
		if errors.Is(err, kv.ErrNotFound) && found {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.Path, err)
		}
		return one(v)
	}
	var room int64
	if err := each(func(p away.Payload) error {
		r.Total += int64(p.At.Length)
		room += away.OnDisk(pack.Extent{To: p.At.Length})
		return nil
	}); err != nil {
		return nil, err
	}
	if db.away != nil && room > db.away.Most() {
		return nil, fmt.Errorf("%w: the part has %d bytes, and at most %d that were fetched are kept; \"zarrdb gc --away-size\" changes the limit", kv.ErrTooLarge, r.Total, db.away.Most())
	}
	var batch []away.Payload
	var size uint64
	end := func() error {
		err := db.fetchBatch(ctx, batch, r)
		batch, size = batch[:0], 0
		if db.away != nil {
			now := db.away.Store.Count()
			r.Requests, r.Received = now.Requests-before.Requests, now.Received-before.Received
		}
		if err == nil && o.Progress != nil {
			o.Progress(*r)
		}
		return err
	}
	err = each(func(p away.Payload) error {
		batch, size = append(batch, p), size+p.At.Length
		if len(batch) < fetchBatch && size < fetchBatchBytes {
			return nil
		}
		return end()
	})
	return r, errors.Join(err, end())
}

// fetchBatch fetches payloads that are not here, several packs at a time, and compares all.
func (db *DB) fetchBatch(ctx context.Context, batch []away.Payload, r *FetchPayloadsReport) error {
	slices.SortFunc(batch, func(a, b away.Payload) int {
		return cmp.Or(bytes.Compare(a.At.Pack[:], b.At.Pack[:]), cmp.Compare(a.At.Offset, b.At.Offset))
	})
	if db.away != nil {
		n, err := db.away.FetchAll(ctx, db.carried(), batch)
		if r.Fetched += n; err != nil {
			return err
		}
	}
	for _, p := range batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		compare := func(b []byte) error {
			if db.away != nil { // which has compared them
				return nil
			}
			return care.CompareSum(p.At, b, p.Sum)
		}
		if err := db.home.view(ctx, p.At, 0, p.At.Length, false, p.Sum, compare); err != nil {
			return err
		}
		r.Payloads++
		r.Bytes += int64(p.At.Length)
	}
	return nil
}
