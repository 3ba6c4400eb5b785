package ocdbt

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
)

// The paths of data files: index.rst, "Data file table format".
func TestDataFileTable(t *testing.T) {
	// a/b + x, a/b + xy, a/c + x; the second shares 4 bytes, the third 2.
	table := []byte{3 /* shared */, 4, 2 /* suffixes */, 4, 1, 2 /* base paths */, 3, 3, 3}
	table = append(table, "a/bx"+"y"+"cx"...)
	c := &cursor{b: table}
	got := decodeFiles(c, "top/", 1000)
	want := []dataFile{{7, "top/a/bx"}, {7, "top/a/bxy"}, {7, "top/a/cx"}}
	if err := c.end(); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v", got, err)
	}
	if got[2].transitive() != "top/a/c" {
		t.Error(got[2].transitive())
	}
	for name, table := range map[string][]byte{
		"shares more than the path before":           {2, 3, 1, 1, 0, 0, 'a', 'b'},
		"a base path longer than the path":           {1, 1, 2, 'a'},
		"shares beyond a base path that is not both": {2, 2, 3, 1, 1, 0, 'a', 'b', 'c', 'd'},
		"cut":      {2, 0, 1, 1, 0, 0, 'a'},
		"too many": {200, 1},
	} {
		c := &cursor{b: table}
		if got := decodeFiles(c, "", 1000); c.err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for path, ok := range map[string]bool{
		"d/0": true, "x y%20": true, "": false, "/etc/passwd": false, "../x": false, "a/./b": false,
		"http://example.org/x": false, "file:/x": false, "c:/x": false, "a\x00": false,
	} {
		if _, err := (dataFile{path: path}).key(); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// A frame of zstd need not say how long it is, nor compress little.
func TestZstdWithoutSize(t *testing.T) {
	enc := must.Get(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)))(t)
	for _, n := range []int{10, 255, 256, 300_000, leastNode - 1, leastNode} {
		want := bytes.Repeat([]byte("abcdefghij"), n/10)
		var stream bytes.Buffer // without the size
		enc.Reset(&stream)
		for _, b := range [][]byte{want[:len(want)/2], want[len(want)/2:]} {
			must.Get(enc.Write(b))(t)
			must.Do(t, enc.Flush())
		}
		must.Do(t, enc.Close())
		for _, b := range [][]byte{stream.Bytes(), enc.EncodeAll(want, nil)} {
			if got, err := decodeZstd(b, leastNode); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes from %d: %d, %v", len(want), len(b), len(got), err)
			}
			if _, err := decodeZstd(b, len(want)-1); !errors.Is(err, formats.ErrFormat) {
				t.Errorf("%d bytes are more than allowed: %v", len(want), err)
			}
		}
	}
}
