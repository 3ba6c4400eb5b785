package txn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
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

type payloadHere struct {
	at  pack.Address
	sum digest.Sum
}

func (db *DB) fetchPayloads(ctx context.Context, o FetchPayloadsOptions) (_ *FetchPayloadsReport, err error) {
	defer wrap(&err, "fetch payloads")
	s, err := db.Snapshot(ctx, o.Commit)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r := &FetchPayloadsReport{}
	var before counts
	if db.away != nil {
		if db.opts.ReadOnly {
			return nil, db.opts.readOnly()
		}
		before = db.away.store.count()
	}
	prefix := ""
	if o.Path != "" {
		prefix = o.Path + "/"
	}
	each := func(fn func(payloadHere) error) error {
		one := func(v tree.Value) error {
			if v.Kind != tree.KindNative {
				return nil
			}
			return fn(payloadHere{catalog.AddressOf(v), v.Sum})
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
	if err := each(func(p payloadHere) error {
		r.Total += int64(p.at.Length)
		room += onDisk(pack.Extent{To: p.at.Length})
		return nil
	}); err != nil {
		return nil, err
	}
	if db.away != nil && room > db.away.most() {
		return nil, fmt.Errorf("%w: the part has %d bytes, and at most %d that were fetched are kept; \"zarrdb gc --away-size\" changes the limit", kv.ErrTooLarge, r.Total, db.away.most())
	}
	var batch []payloadHere
	var size uint64
	end := func() error {
		err := db.fetchBatch(ctx, batch, r)
		batch, size = batch[:0], 0
		if db.away != nil {
			now := db.away.store.count()
			r.Requests, r.Received = now.Requests-before.Requests, now.Received-before.Received
		}
		if err == nil && o.Progress != nil {
			o.Progress(*r)
		}
		return err
	}
	err = each(func(p payloadHere) error {
		batch, size = append(batch, p), size+p.at.Length
		if len(batch) < fetchBatch && size < fetchBatchBytes {
			return nil
		}
		return end()
	})
	return r, errors.Join(err, end())
}

// fetchBatch fetches payloads that are not here, several packs at a time, and compares all.
func (db *DB) fetchBatch(ctx context.Context, batch []payloadHere, r *FetchPayloadsReport) error {
	slices.SortFunc(batch, func(a, b payloadHere) int {
		return cmp.Or(bytes.Compare(a.at.Pack[:], b.at.Pack[:]), cmp.Compare(a.at.Offset, b.at.Offset))
	})
	if db.away != nil {
		if err := db.away.fetchAll(ctx, batch, r); err != nil {
			return err
		}
	}
	for _, p := range batch {
		err := ctx.Err()
		switch {
		case err != nil:
		case db.away != nil:
			err = db.viewOrFetch(ctx, p.at, 0, p.at.Length, false, p.sum, func([]byte) error { return nil })
		default:
			err = db.view(ctx, p.at, 0, p.at.Length, false, func(b []byte) error { return care.CompareSum(p.at, b, p.sum) })
		}
		if err != nil {
			return err
		}
		r.Payloads++
		r.Bytes += int64(p.at.Length)
	}
	return nil
}

// fetchAll fetches payloads, which ascend. What cannot be had is found when they are compared.
func (a *awayPart) fetchAll(ctx context.Context, batch []payloadHere, r *FetchPayloadsReport) error {
	var ids []pack.ID
	need := map[pack.ID][]pack.Extent{}
	from := a.db.carried()
	for _, p := range slices.Compact(slices.Clone(batch)) {
		if p.at.Length == 0 {
			continue
		}
		if need[p.at.Pack] == nil {
			ids = append(ids, p.at.Pack)
		}
		need[p.at.Pack] = append(need[p.at.Pack], pack.Extent{From: p.at.Offset, To: p.at.Offset + p.at.Length})
	}
	got := make([]int64, len(ids))
	err := gather.Each(ctx, 4, len(ids), func(ctx context.Context, i int) error {
		left, err := from.NotHere(ctx, ids[i], need[ids[i]])
		for len(left) > 0 && err == nil {
			n := 1 // some at a time, so that it ends soon if ctx does
			for n < min(len(left), 4096) && left[n].To-left[0].From < 256<<20 {
				n++
			}
			var came pack.Imported
			if came, err = a.carry(a.as(askerOf(ctx)), ids[i], left[:n]); err == nil {
				err = ctx.Err()
			}
			got[i], left = got[i]+int64(came.Written), left[n:]
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			return a.failed(ctx, "a part of the payloads", err)
		}
		return nil
	})
	for _, n := range got {
		r.Fetched += n
	}
	return err
}
