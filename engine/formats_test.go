package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// rowsFormat is a format of tests: a file of "ROWS", a count, and rows of four bytes.
// In a directory, each row is a file of its own, row-0, row-1, which may be missing.
func rowsFormat(dir bool) formats.Format {
	f := formats.Format{Scheme: "rows", Directory: dir}
	document := func(n int64) []byte {
		return fmt.Appendf(nil, `{"zarr_format":3,"node_type":"array","shape":[%d,4],"data_type":"uint8",
			"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1,4]}},
			"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},
			"fill_value":9,"codecs":[{"name":"bytes"}]}`, n)
	}
	f.Detect = func(e formats.Evidence) bool { return bytes.HasPrefix(e.Head, []byte("ROWS")) }
	if dir {
		f.Files = []string{"rows.txt"}
		f.Detect = func(e formats.Evidence) bool { return e.Has("rows.txt") }
	}
	f.Open = func(ctx context.Context, base formats.Base, _ formats.Options) (refs.Set, error) {
		t := formats.NewTree()
		a := formats.Array{Prefix: "c/", Separator: '/', Counts: []int64{0, 1}}
		if dir {
			head, err := base.Files.Get(ctx, "rows.txt", kv.All())
			if err != nil {
				return nil, err
			}
			a.Counts[0] = int64(len(head))
			a.Chunk = func(_ context.Context, c []int64) (refs.Reference, error) {
				return refs.Reference{URL: fmt.Sprintf("row-%d", c[0]), Length: refs.WholeFile, Optional: true}, nil
			}
			a.Coords = func(ctx context.Context) iter.Seq2[[]int64, error] {
				return func(yield func([]int64, error) bool) {
					for key, err := range base.Files.(kv.Lister).List(ctx, kv.ListOptions{Prefix: "row-"}) {
						c := []int64{0, 0}
						if err == nil {
							_, err = fmt.Sscanf(key, "row-%d", &c[0])
						}
						if !yield(c, err) {
							return
						}
					}
				}
			}
		} else {
			head, err := kv.ReadValue(ctx, base.File, kv.Span(0, 8))
			if err != nil {
				return nil, formats.Invalid("the header: %v", err)
			}
			a.Counts[0] = int64(binary.LittleEndian.Uint32(head[4:]))
			a.Chunk = func(_ context.Context, c []int64) (refs.Reference, error) {
				return refs.Reference{URL: base.Name, Offset: 8 + 4*c[0], Length: 4}, nil
			}
		}
		t.Put("zarr.json", document(a.Counts[0]))
		t.Add(a)
		return t, nil
	}
	return f
}

func rowsAdapters(f formats.Format) *Adapters {
	a := DefaultAdapters()
	a.RegisterAdapter(f.Scheme, source.ForeignAdapter(f))
	return a
}

// A format of one file and one of a directory are detected, read, imported and
// linked; a file that is missing is a chunk without a value.
func TestForeignFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := append([]byte("ROWS\x03\x00\x00\x00"), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	want := [2][]byte{file[8:], {1, 2, 3, 4, 9, 9, 9, 9, 5, 6, 7, 8}}
	write := func(name string, b []byte) {
		t.Helper()
		p := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(p), 0o777), os.WriteFile(p, b, 0o666)))
	}
	write("a b%20c.rows", file)
	write("d/rows.txt", []byte("xxx"))
	write("d/row-0", []byte{1, 2, 3, 4})
	write("d/row-2", []byte{5, 6, 7, 8})
	for i, url := range []string{filepath.Join(dir, "a b%20c.rows"), filepath.Join(dir, "d")} {
		ctx := t.Context()
		adapters := rowsAdapters(rowsFormat(i == 1))
		src := must.Get(OpenSource(ctx, url, &SourceOptions{Adapters: adapters}))(t)
		defer src.Close()
		if full, err := src.Detect(ctx); err != nil || !strings.HasSuffix(full, "|rows:") {
			t.Fatalf("detected %s, %v", full, err)
		}
		node := must.Get(src.Node(ctx))(t)
		a, _ := node.Array()
		checkRows(t, a, want[i])
		for _, link := range []bool{false, true} {
			db := must.Get(Create(bg, filepath.Join(dir, fmt.Sprint(i, link)), &Options{Adapters: adapters}))(t)
			defer db.Close()
			if _, err := db.Import(ctx, src, ImportOptions{To: "x", Link: link, Message: "m"}); err != nil {
				t.Fatalf("import, link %v: %v", link, err)
			}
			snap := must.Get(db.At(ctx, "main"))(t)
			defer snap.Close()
			a := must.Get(snap.Array(ctx, "x"))(t)
			checkRows(t, a, want[i])
		}
	}
}

func checkRows(t *testing.T, a *zarr.Array, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if err := a.ReadBytes(t.Context(), zarr.Selection{}, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v, %v", got, err)
	}
}

// TestOtherFiles gives every format of files a file of another format. The error names the wrong
// format, and does not call the file damaged.
func TestOtherFiles(t *testing.T) {
	for _, f := range source.Formats() {
		if f.Directory || f.Scheme == "avif" { // which reads none
			continue
		}
		t.Run(f.Scheme, func(t *testing.T) {
			formattest.Other(t, f, []byte("GIF89a, which no format here is, and more than any header has: "+strings.Repeat("x", 100)))
		})
	}
}
