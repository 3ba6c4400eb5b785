package engine

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// TestBackupAfterReads backs up a database in a process that has read something of
// it before, in each way: the backup has every chunk.
func TestBackupAfterReads(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "w.zdb")
	db, err := Open(bg, path, &Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	data := make([]float64, n*100)
	for i := range data {
		data[i] = float64(i*7919%100003) * 1.000123
	}
	_, err = db.Update(ctx, "main", "x", func(s *Session) error {
		a, err := s.CreateArray(ctx, "temp", zarr.Spec{Shape: []int64{n, 100}, Chunks: []int64{1, 100}, DataType: "float64"})
		if err != nil {
			return err
		}
		return zarr.Write(ctx, a, zarr.Sel(), data)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reads := map[string]zarr.Selection{
		"a chunk":     zarr.Sel(zarr.At(500)),
		"an element":  zarr.Sel(zarr.At(501), zarr.At(7)),
		"a thin line": zarr.Sel(zarr.All(), zarr.At(7)),
		"all":         zarr.Sel(),
	}
	for name, sel := range reads {
		t.Run(name, func(t *testing.T) {
			db, err := Open(bg, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			snap, err := db.At(ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			a, err := snap.Array(ctx, "temp")
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := zarr.Read[float64](ctx, a, sel); err != nil {
				t.Fatal(err)
			}
			bak := filepath.Join(t.TempDir(), "bak")
			if _, err := db.Backup(ctx, bak, txn.TransferOptions{}); err != nil {
				t.Fatal(err)
			}
			copied, err := Open(bg, bak, &Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer copied.Close()
			r, err := copied.Check(ctx, txn.CheckOptions{Payloads: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Found > 0 {
				t.Fatalf("%d problems in a backup of %d chunks, the first: %v", r.Found, n, r.Problems[0])
			}
			then, err := copied.At(ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			defer then.Close()
			if a, err = then.Array(ctx, "temp"); err != nil {
				t.Fatal(err)
			}
			if got, _, err := zarr.Read[float64](ctx, a, zarr.Sel()); err != nil || !slices.Equal(got, data) {
				t.Fatalf("the backup reads %d values differently: %v", len(got), err)
			}
		})
	}
}
