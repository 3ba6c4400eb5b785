package inflate

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"testing"
)

func packZlib(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	must.Get(w.Write(data))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

func packGzip(t testing.TB, data []byte, h gzip.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Header = h
	must.Get(w.Write(data))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

func TestZlib(t *testing.T) {
	data := steps(3000)
	good := packZlib(t, data)
	out, n, err := Zlib([]byte("x"), append(bytes.Clone(good), 1, 2, 3), int64(len(data)))
	if err != nil || n != len(good) || string(out[:1]) != "x" || !bytes.Equal(out[1:], data) {
		t.Fatalf("%d bytes from %d of %d, error %v", len(out), n, len(good), err)
	}
	if _, _, err := Zlib(nil, good, int64(len(data)-1)); !errors.Is(err, errTooLarge) {
		t.Errorf("one byte too little: %v", err)
	}
	for n := range good {
		if _, _, err := Zlib(nil, good[:n], 1<<20); !errors.Is(err, errCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	damage := func(name string, f func(b []byte)) {
		bad := bytes.Clone(good)
		f(bad)
		if _, _, err := Zlib(nil, bad, 1<<20); !errors.Is(err, errCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	damage("header checksum", func(b []byte) { b[1] ^= 1 })
	damage("method", func(b []byte) { b[0], b[1] = 0x77, 0x85 })
	damage("window", func(b []byte) { b[0], b[1] = 0x88, 0x1c })
	damage("dictionary", func(b []byte) { b[0], b[1] = 0x78, 0xbb })
	damage("Adler-32", func(b []byte) { b[len(b)-1] ^= 1 })
}

func TestGzip(t *testing.T) {
	data := steps(3000)
	long := gzip.Header{Name: "name", Comment: "a comment", Extra: []byte{1, 2, 3, 4, 5}}
	one, two := packGzip(t, data, long), packGzip(t, data[:100], gzip.Header{})
	both := append(bytes.Clone(one), two...)
	for _, c := range []struct {
		name     string
		src      []byte
		want     []byte
		consumed int
	}{
		{"one", one, data, len(one)},
		{"two members", both, append(bytes.Clone(data), data[:100]...), len(both)},
		{"zeros behind", append(bytes.Clone(one), make([]byte, 9)...), data, len(one)},
		{"garbage behind", append(bytes.Clone(both), "garbage"...), append(bytes.Clone(data), data[:100]...), len(both)},
		{"empty members", append(bytes.Clone(packGzip(t, nil, long)), packGzip(t, nil, long)...), nil, 2 * len(packGzip(t, nil, long))},
	} {
		out, n, err := Gzip([]byte("x"), c.src, int64(len(c.want)))
		if err != nil || n != c.consumed || string(out[:1]) != "x" || !bytes.Equal(out[1:], c.want) {
			t.Errorf("%s: %d bytes from %d of %d, error %v", c.name, len(out), n, len(c.src), err)
		}
		if len(c.want) > 0 {
			if _, _, err := Gzip(nil, c.src, int64(len(c.want)-1)); !errors.Is(err, errTooLarge) {
				t.Errorf("%s: one byte too little: %v", c.name, err)
			}
		}
	}
	for n := range both {
		if _, _, err := Gzip(nil, both[:n], 1<<20); err == nil && n != len(one) && n != len(one)+1 || err != nil && !errors.Is(err, errCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	damage := func(name string, f func(b []byte)) {
		bad := bytes.Clone(one)
		f(bad)
		if _, _, err := Gzip(nil, bad, 1<<20); !errors.Is(err, errCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	damage("magic", func(b []byte) { b[0] = 0x1e })
	damage("method", func(b []byte) { b[2] = 7 })
	damage("header CRC", func(b []byte) { b[3] |= 2 })
	damage("extra too long", func(b []byte) { b[10], b[11] = 0xff, 0xff })
	damage("reserved flags", func(b []byte) { b[3] |= 0x20 })
	damage("CRC-32", func(b []byte) { b[len(b)-8] ^= 1 })
	damage("size", func(b []byte) { b[len(b)-4] ^= 1 })
}

// FuzzFrames compares both frames with the standard library; of gzip the
// first member only, where it is as strict.
func FuzzFrames(f *testing.F) {
	f.Add(packZlib(f, steps(50)))
	f.Add(packGzip(f, steps(50), gzip.Header{Name: "n", Comment: "c", Extra: []byte{1, 2}}))
	f.Fuzz(func(t *testing.T, src []byte) {
		const limit = 1 << 16
		check := func(name string, want []byte, wantErr error, decode func(dst, src []byte, max int64) ([]byte, int, error)) {
			if len(want) > limit {
				return
			}
			out, _, err := decode(nil, src, limit)
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(out, want) {
				t.Fatalf("%s: %d bytes, error %v; the standard library: %d bytes, error %v", name, len(out), err, len(want), wantErr)
			}
		}
		var want []byte
		zr, err := zlib.NewReader(bytes.NewReader(src))
		if err == nil {
			want, err = io.ReadAll(io.LimitReader(zr, limit+1))
		}
		check("zlib", want, err, Zlib)

		want = nil
		gr, err := gzip.NewReader(bytes.NewReader(src))
		if err == nil {
			gr.Multistream(false)
			want, err = io.ReadAll(io.LimitReader(gr, limit+1))
		}
		if len(src) > 3 && src[3]&0xe0 != 0 {
			// RFC 1952, 2.3.1.2: reserved flags must be an error, which the
			// standard library does not make of them.
			want, err = nil, errors.New("reserved flags")
		}
		check("gzip", want, err, member)
	})
}
