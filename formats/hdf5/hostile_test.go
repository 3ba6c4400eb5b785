package hdf5_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/formats/hdf5"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// The error of a file that is cut off names both lengths, and that of a file that is open for
// writing says so.
func TestRefused(t *testing.T) {
	f := hdf5.Format()
	data := load(t, "indexes.h5")
	formattest.Refused(t, f, data[:len(data)-1], formats.ErrFormat)
	_, err := formattest.Open(t.Context(), f, formattest.Files(data[:len(data)-1]), formattest.Name)
	if err == nil || !strings.Contains(err.Error(), "33256") || !strings.Contains(err.Error(), "33257") {
		t.Errorf("a file that is cut off: %v", err)
	}
	formattest.Refused(t, f, data[:300], formats.ErrFormat)
	formattest.Other(t, f, []byte("no HDF5 file"))
	b := load(t, "indexes.h5")
	b[11] |= 1
	binary.LittleEndian.PutUint32(b[44:], codecs.Lookup3(b[:44], 0))
	_, err = formattest.Open(t.Context(), f, formattest.Files(b), formattest.Name)
	if !errors.Is(err, formats.ErrUnsupported) || !strings.Contains(err.Error(), "open for writing") {
		t.Errorf("a file that is open for writing: %v", err)
	}
	b = load(t, "indexes.h5")
	b[46] ^= 1
	formattest.Refused(t, f, b, formats.ErrFormat) // the checksum of the superblock
}

// known are the errors of damage, and of what is not supported.
var known = []error{formats.ErrFormat, formats.ErrUnsupported, kv.ErrCorrupt, codecs.ErrCorrupt, codecs.ErrUnknown, codecs.ErrConfig, kv.ErrRange, zarr.ErrNotFound, zarr.ErrMetadata,
	zarr.ErrKind, formattest.ErrLarge, kv.ErrNotFound}

// Bytes that are changed end in an error that says so, or in values, and soon.
func TestDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	r := formattest.Registry(hdf5.Format())
	index := goldens(t)
	for _, name := range slices.Sorted(maps.Keys(index)) {
		data := load(t, name)
		for i := range 60 {
			b := bytes.Clone(data)
			at := (i*7919 + i*i*31) % min(len(b), 30000)
			for j := range 1 + i%4*3 {
				b[(at+j)%len(b)] ^= byte(1 << (i % 8))
			}
			start := time.Now()
			view, err := formattest.Open(t.Context(), hdf5.Format(), formattest.Files(b), formattest.Name)
			if err == nil {
				for path := range index[name].Arrays {
					if err = readAny(t.Context(), view, r, path); err != nil {
						break
					}
				}
			}
			if err != nil && !slices.ContainsFunc(known, func(want error) bool { return errors.Is(err, want) }) {
				t.Errorf("%s, change %d at %d: %v", name, i, at, err)
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("%s, change %d at %d took %v", name, i, at, d)
			}
		}
	}
}

// readAny reads an array of texts, or a small one of others.
func readAny(ctx context.Context, view kv.Reader, r *codecs.Registry, path string) error {
	a, err := zarr.OpenArray(ctx, view, path, &zarr.OpenOptions{Registry: r})
	if err != nil {
		return err
	}
	n := int64(max(1, a.Type().Size()))
	for _, d := range a.Shape() {
		if d > 0 && n > 1<<20/d {
			return formattest.ErrLarge
		}
		n *= d
	}
	if a.Type().Kind() == dtype.String {
		_, _, err = zarr.Read[string](ctx, a, zarr.Sel())
		return err
	}
	return a.ReadBytes(ctx, zarr.Sel(), make([]byte, n))
}

func FuzzOpen(f *testing.F) {
	for name := range goldens(f) {
		f.Add(load(f, name))
	}
	r := formattest.Registry(hdf5.Format())
	f.Fuzz(func(t *testing.T, data []byte) {
		hdf5.Repair(data)
		formattest.Fuzz(t, hdf5.Format(), r, data)
		view, err := formattest.Open(t.Context(), hdf5.Format(), formattest.Files(data), formattest.Name)
		if err != nil {
			return
		}
		n := 0
		for key, err := range view.List(t.Context(), kv.ListOptions{}) {
			if n++; err != nil || n > 1000 {
				break
			}
			if path, ok := strings.CutSuffix(key, "/zarr.json"); ok {
				_ = readAny(t.Context(), view, r, path)
			}
		}
	})
}
