package engine

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// TestBackupAfterReads backs up a database in a process that has read something of
// it before, in each way: the backup has every chunk.
func TestBackupAfterReads(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "w.zdb")
	db := must.Get(Open(bg, path, &Options{Create: true}))(t)
	const n = 1000
	data := make([]float64, n*100)
	for i := range data {
		data[i] = float64(i*7919%100003) * 1.000123
	}
	must.Get(db.Update(ctx, "main", "x", func(s *Session) error {
		a, err := s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{n, 100}, Chunks: []int64{1, 100}, DataType: "float64"})
		if err != nil {
			return err
		}
		return zarr.Write(ctx, a, zarr.Sel(), data)
	}))(t)
	must.Do(t, db.Close())
	reads := map[string]zarr.Selection{
		"a chunk":     zarr.Sel(zarr.At(500)),
		"an element":  zarr.Sel(zarr.At(501), zarr.At(7)),
		"a thin line": zarr.Sel(zarr.All(), zarr.At(7)),
		"all":         zarr.Sel(),
	}
	for name, sel := range reads {
		t.Run(name, func(t *testing.T) {
			db, err := Open(bg, path, nil)
			must.Do(t, err)
			defer db.Close()
			snap := must.Get(db.At(ctx, "main"))(t)
			defer snap.Close()
			a := must.Get(snap.Array(ctx, "temp"))(t)
			if _, _, err := zarr.Read[float64](ctx, a, sel); err != nil {
				t.Fatal(err)
			}
			bak := filepath.Join(t.TempDir(), "bak")
			must.Get(db.Backup(ctx, bak, txn.TransferOptions{}))(t)
			copied := must.Get(Open(bg, bak, &Options{ReadOnly: true}))(t)
			defer copied.Close()
			r := must.Get(copied.Check(ctx, txn.CheckOptions{Payloads: true}))(t)
			if r.Found > 0 {
				t.Fatalf("%d problems in a backup of %d chunks, the first: %v", r.Found, n, r.Problems[0])
			}
			then := must.Get(copied.At(ctx, "main"))(t)
			defer then.Close()
			a = must.Get(then.Array(ctx, "temp"))(t)
			if got, _, err := zarr.Read[float64](ctx, a, zarr.Sel()); err != nil || !slices.Equal(got, data) {
				t.Fatalf("the backup reads %d values differently: %v", len(got), err)
			}
		})
	}
}
