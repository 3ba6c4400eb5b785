package parquet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// table makes what Append takes.
func table(rows []row) *parquet.Table {
	t := &parquet.Table{}
	number := map[string]int32{}
	for _, r := range rows {
		n := int32(-1)
		if r.path != nil {
			var ok bool
			if n, ok = number[*r.path]; !ok {
				n = int32(len(t.Paths))
				number[*r.path] = n
				t.Paths = append(t.Paths, *r.path)
			}
		}
		t.Path, t.Offset, t.Size, t.Raw = append(t.Path, n), append(t.Offset, r.offset), append(t.Size, r.size), append(t.Raw, r.raw)
	}
	return t
}

func TestReadArrow(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var r parquet.Reader // one for all: nothing may stay behind
	codecs := []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd}
	for i := range 120 {
		l := layout{
			v2: rnd.IntN(2) == 0, dictionary: rnd.IntN(2) == 0, groups: 1 + rnd.IntN(3), pageSize: 100 << rnd.IntN(12),
			codec: codecs[i%len(codecs)], extra: rnd.IntN(4) == 0, noRaw: rnd.IntN(4) == 0, small: rnd.IntN(4) == 0,
		}
		rows := random(rnd, rnd.IntN(2000))
		for k := range rows {
			x := &rows[k]
			if l.small {
				x.offset, x.size = int64(int32(x.offset)), int64(int32(x.size))
			}
			if l.noRaw {
				x.raw = nil
			}
		}
		t.Run(fmt.Sprintf("%d", i), func(t *testing.T) {
			b := arrowWrite(t, rows, l)
			got, err := readWith(t, &r, kv.Bytes(b), nil)
			if err != nil {
				t.Fatalf("%+v: %v", l, err)
			}
			compare(t, got, rows)
		})
	}
}

// TestOtherEncoding reads encodings that no writer of reference sets uses.
func TestOtherEncoding(t *testing.T) {
	for _, column := range []string{"path", "offset"} {
		b := arrowWrite(t, random(rand.New(rand.NewPCG(7, 8)), 60), layout{groups: 1, pageSize: 1000, delta: column})
		if _, err := read(t, kv.Bytes(b), nil); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), column) {
			t.Errorf("%s: %v", column, err)
		}
	}
}

func TestRequired(t *testing.T) {
	p := "a/b"
	rows := []row{{&p, 1, 2, []byte("x")}, {&p, 3, 4, []byte{}}}
	for _, v2 := range []bool{false, true} {
		b := arrowWrite(t, rows, layout{v2: v2, groups: 1, pageSize: 1000, required: true})
		got := must.Get(read(t, kv.Bytes(b), nil))(t)
		compare(t, got, rows)
	}
}

// TestLarge reads a file that is too large to be read at once.
func TestLarge(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	rows := random(rnd, 300_000)
	for i := range rows {
		rows[i].offset, rows[i].size = rnd.Int64(), rnd.Int64()
	}
	b := must.Get(table(rows).Append(nil))(t)
	if len(b) < 4<<20 {
		t.Fatalf("a file of %d bytes", len(b))
	}
	b = arrowWrite(t, append(rows, rows...), layout{groups: 2, pageSize: 1 << 18, dictionary: true})
	if len(b) < 9<<20 {
		t.Fatalf("a file of %d bytes", len(b))
	}
	got := must.Get(read(t, kv.Bytes(b), nil))(t)
	compare(t, got, append(rows, rows...))

	if _, err := read(t, kv.Bytes(b), &parquet.Options{MaxBytes: 1 << 16}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("with little memory: %v", err)
	}
}

// TestWrite has Arrow and the package read what the package writes.
func TestWrite(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	a := "a"
	cases := [][]row{nil, {{}}, {{path: &a}}, {{raw: []byte{}}}, {{raw: []byte("x")}, {}, {path: &a, offset: 1, size: 2}}, make([]row, 70_000)}
	for range 30 {
		cases = append(cases, random(rnd, rnd.IntN(3000)))
	}
	// Runs of numbers that take two bytes.
	long := make([]row, 0, 12_000)
	for i := range cap(long) {
		p := fmt.Sprintf("s3://bucket/%d", i/20)
		long = append(long, row{path: &p, offset: int64(i), size: 1})
	}
	// Pages of which none is like the one before.
	pages := make([]row, 200_000)
	for i := range pages {
		switch p := fmt.Sprintf("s3://bucket/%d", i%9); (i/7 + i>>16) % 3 {
		case 0:
			pages[i] = row{path: &p, offset: int64(i), size: int64(2 * i)}
		case 1:
			pages[i].raw = fmt.Append(nil, i)
		}
	}
	cases = append(cases, long, pages, random(rnd, 200_000))
	for _, rows := range cases {
		tb := table(rows)
		b := must.Get(tb.Append([]byte("before")))(t)
		again, err := tb.Append([]byte("before"))
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("the same table gives other bytes, %v", err)
		}
		b = b[len("before"):]
		got := must.Get(read(t, kv.Bytes(b), nil))(t)
		compare(t, got, rows)
		got = must.Get(arrowRead(b))(t)
		compare(t, got, rows)
	}
}

// TestNullCounts reads the only statistics there are with Arrow. Without them
// fastparquet takes the integers for floats.
func TestNullCounts(t *testing.T) {
	rows := random(rand.New(rand.NewPCG(7, 8)), 500)
	b := must.Get(table(rows).Append(nil))(t)
	want := make([]int64, 4)
	for _, r := range rows {
		if r.path == nil {
			want[0]++
		}
		if r.raw == nil {
			want[3]++
		}
	}
	f := must.Get(file.NewParquetReader(bytes.NewReader(b)))(t)
	size := int64(0)
	for i, n := range want {
		c := must.Get(f.RowGroup(0).MetaData().ColumnChunk(i))(t)
		size += c.TotalUncompressedSize()
		if c.HasDictionaryPage() != (i == 0) {
			t.Errorf("column %d has a dictionary or none", i)
		}
		s, err := c.Statistics()
		if err != nil || s == nil || !s.HasNullCount() || s.NullCount() != n || s.HasMinMax() {
			t.Errorf("column %d: %v, %v, want %d nulls", i, s, err, n)
		}
	}
	if all := f.RowGroup(0).MetaData().TotalByteSize(); all != size {
		t.Errorf("%d bytes in columns of %d", all, size)
	}
}

func TestWriteShortRaw(t *testing.T) {
	tb := &parquet.Table{Path: []int32{-1, -1, -1}, Offset: make([]int64, 3), Size: make([]int64, 3), Raw: [][]byte{[]byte("x")}}
	b := must.Get(tb.Append(nil))(t)
	got := must.Get(read(t, kv.Bytes(b), nil))(t)
	compare(t, got, []row{{raw: []byte("x")}, {}, {}})
	tb.Size = tb.Size[1:]
	if _, err := tb.Append(nil); err == nil {
		t.Error("columns of different lengths are written")
	}
	tb = &parquet.Table{Path: []int32{0}, Offset: make([]int64, 1), Size: make([]int64, 1)}
	if _, err := tb.Append(nil); err == nil {
		t.Error("a path without text is written")
	}
}

// TestGolden reads files of other writers; testdata/README.md names them.
func TestGolden(t *testing.T) {
	for name, want := range map[string]struct {
		rows  int
		first string
	}{
		"fastparquet.parq":            {4, `{data/blob.bin 0 48 "" true}`},
		"fastparquet_categories.parq": {6, `{data/a.nc 21394 107 "" true}`},
		"pyarrow_null_raw.parq":       {5, `{data/b.bin 0 12 "" true}`},
	} {
		b := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
		rows, err := read(t, kv.Bytes(b), nil)
		if err != nil || len(rows) != want.rows || rows[0].String() != want.first {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
	}
}

// TestCorrupt cuts and changes files. Each reading must end in rows or in an
// error that says that the file is bad, never in a panic.
func TestCorrupt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	files := map[string][]byte{}
	for i, l := range []layout{
		{groups: 1, pageSize: 500, codec: compress.Codecs.Zstd, dictionary: true},
		{groups: 2, pageSize: 300, v2: true, codec: compress.Codecs.Snappy},
		{groups: 1, pageSize: 1000},
	} {
		files[fmt.Sprint(i)] = arrowWrite(t, random(rnd, 60), l)
	}
	own := must.Get(table(random(rnd, 50)).Append(nil))(t)
	files["own"] = own
	for name, b := range files {
		try := func(what string, b []byte) {
			rows, err := read(t, kv.Bytes(b), &parquet.Options{MaxBytes: 1 << 20})
			if err != nil && !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s %s: %v", name, what, err)
			}
			if len(rows) > 1<<20 {
				t.Errorf("%s %s: %d rows", name, what, len(rows))
			}
		}
		for i := range b {
			for _, x := range []byte{0xff, 1 << rnd.IntN(8)} {
				c := bytes.Clone(b)
				c[i] ^= x
				try(fmt.Sprintf("byte %d ^ %x", i, x), c)
			}
			if _, err := read(t, kv.Bytes(b[:i]), nil); err == nil {
				t.Errorf("%s: %d of %d bytes are read", name, i, len(b))
			}
		}
	}
}

func TestNoParquet(t *testing.T) {
	huge := append([]byte("PAR1xxxxxxxx"), binary.LittleEndian.AppendUint32(nil, 1<<31)...)
	for name, b := range map[string][]byte{"empty": nil, "text": []byte("this is not a parquet file"), "magic": []byte("PAR1PAR1PAR1"), "footer": append(huge, "PAR1"...)} {
		if _, err := read(t, kv.Bytes(b), nil); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, l := range []layout{
		{groups: 1, pageSize: 500, codec: compress.Codecs.Zstd, dictionary: true}, {groups: 2, pageSize: 300, v2: true}, {groups: 1, pageSize: 1000},
		{groups: 1, pageSize: 1000, noRaw: true, small: true},
	} {
		f.Add(arrowWrite(f, random(rnd, 20), l))
	}
	own := must.Get(table(random(rnd, 30)).Append(nil))(f)
	f.Add(own)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r parquet.Reader
		if err := r.Open(t.Context(), kv.Bytes(b), &parquet.Options{MaxBytes: 1 << 20}); err != nil {
			return
		}
		var batch parquet.Batch
		for n := 0; n < 1<<20 && r.Next(&batch) == nil; n += batch.Len() {
		}
	})
}
