package zipkv

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// A member that is read in pieces has the bytes that it has in one piece.
func TestStream(t *testing.T) {
	content := sample()
	content["long"] = bytes.Repeat([]byte("0123456789abcdef"), (9<<20)/16)
	for _, archive := range [][]byte{write(t, content), writeStd(t, content, zip.Deflate)} {
		r := openBytes(t, archive)
		r.maxMember = 1 << 20
		for key, want := range content {
			v, err := r.Locate(ctx, key)
			must.Do(t, err)
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
	content := map[string][]byte{"big": big}
	for name, archive := range map[string][]byte{"stored": write(t, content), "deflated": writeStd(t, content, zip.Deflate)} {
		archive[len(archive)/2] ^= 4
		v := must.Get(openBytes(t, archive).Locate(ctx, "big"))(t)
		z := newWriter(io.Discard)
		if err := z.SetValue(ctx, "big", v); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: error %v, want one of damage", name, err)
		}
	}
}
