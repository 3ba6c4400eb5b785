package zipkv

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

// A member that is read in pieces has the bytes that it has in one piece.
func TestStream(t *testing.T) {
	content := sample()
	content["long"] = bytes.Repeat([]byte("0123456789abcdef"), (9<<20)/16)
	for _, opts := range []*WriterOptions{nil, {Level: 1}} {
		r := openBytes(t, write(t, content, opts), &Options{MaxMemberBytes: 1 << 20})
		for key, want := range content {
			v, err := r.Locate(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			err = kv.Stream(ctx, v, func(b []byte) error {
				got = append(got, b...)
				return nil
			})
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q: %d bytes, %v", key, len(got), err)
			}
			fault := errors.New("enough")
			if err := kv.Stream(ctx, v, func([]byte) error { return fault }); len(want) > 0 && err != fault {
				t.Errorf("%q: error of fn: %v", key, err)
			}
		}
	}
}

// A damaged member is not copied into another archive, under a checksum that fits
// the damage.
func TestDamagedMemberIsNotCopied(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), (atOnce+1<<20)/16)
	for _, opts := range []*WriterOptions{nil, {Level: 1}} {
		archive := write(t, map[string][]byte{"big": big}, opts)
		archive[len(archive)/2] ^= 4
		v, err := openBytes(t, archive, nil).Locate(ctx, "big")
		if err != nil {
			t.Fatal(err)
		}
		z := NewWriter(io.Discard, nil)
		if err := z.SetValue(ctx, "big", v); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%v: error %v, want one of damage", opts, err)
		}
	}
}
