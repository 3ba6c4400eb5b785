package lzma

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
	"github.com/zarrdb/zarrdb/internal/must"
)

func ramp(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, n)
	v := 0
	for i := 0; i+4 <= n; i += 4 {
		v += r.IntN(5)
		out[i], out[i+1], out[i+2] = byte(v), byte(v>>8), byte(v>>16)
	}
	return out
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

type sample struct {
	name string
	data []byte
}

func samples() []sample {
	return []sample{
		{"empty", nil},
		{"one", []byte{5}},
		{"ramp", ramp(20_000)},
		{"noise", noise(5000)},
		{"zeros", make([]byte, 100_000)},
		{"long noise", noise(140_000)},
		{"period", bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 500)},
		{"mixed", append(append(noise(70_000), ramp(30_000)...), noise(1000)...)},
	}
}

var options = []Options{
	{Props: DefaultProps, Dict: 1 << 20, Check: CheckCRC64},
	{Props: Props{LC: 0, LP: 2, PB: 0}, Dict: 4096, Check: checkNone, Deltas: []int{4}},
	{Props: Props{LC: 4, LP: 0, PB: 4}, Dict: 1 << 16, Check: checkCRC32, Deltas: []int{1, 256}},
	{Props: Props{LC: 1, LP: 3, PB: 1}, Dict: 1 << 16, Check: checkSHA256, Deltas: []int{2, 8, 1}},
}

// form is one of the forms that data can have.
type form struct {
	name   string
	encode func(dst, src []byte, o Options) ([]byte, error)
	decode func(dst, src []byte, o Options, max int64) ([]byte, error)
}

var forms = []form{
	{"xz", EncodeXZ, func(dst, src []byte, _ Options, max int64) ([]byte, error) { return DecodeXZ(dst, src, max) }},
	{"alone", EncodeAlone, func(dst, src []byte, _ Options, max int64) ([]byte, error) { return DecodeAlone(dst, src, max) }},
	{"raw", EncodeRaw, func(dst, src []byte, o Options, max int64) ([]byte, error) { return DecodeRaw(dst, src, o, max) }},
	{"lzma2", EncodeLZMA2, func(dst, src []byte, o Options, max int64) ([]byte, error) {
		out, err := DecodeLZMA2(dst, src, o, max)
		Undelta(out[len(dst):], o.Deltas)
		return out, err
	}},
}

func TestRoundTrip(t *testing.T) {
	for _, s := range samples() {
		for _, f := range forms {
			for _, o := range options {
				packed, err := f.encode([]byte("x"), s.data, o)
				if err != nil {
					t.Fatalf("%s, %s, %+v: %v", s.name, f.name, o, err)
				}
				packed = packed[1:]
				room := append(make([]byte, 0, len(s.data)+50), "before"...)
				behind := room[:cap(room)][6+len(s.data):]
				copy(behind, "behind")
				for _, dst := range [][]byte{[]byte("before"), room} {
					out, err := f.decode(dst, packed, o, int64(len(s.data)))
					if err != nil || !bytes.Equal(out[6:], s.data) || !bytes.HasPrefix(behind, []byte("behind")) {
						t.Fatalf("%s, %s, %+v: %d bytes, error %v; or they are wrong", s.name, f.name, o, len(out), err)
					}
				}
				if len(s.data) == 0 {
					continue
				}
				if _, err := f.decode(nil, packed, o, int64(len(s.data)-1)); !errors.Is(err, errTooLarge) {
					t.Errorf("%s, %s, %+v, one byte too little: %v", s.name, f.name, o, err)
				}
				for _, n := range []int{0, 1, 4, 5, 12, 20, len(packed) / 2, len(packed) - 2, len(packed) - 1} {
					if n < len(packed) {
						if _, err := f.decode(nil, packed[:n], o, 1<<20); !errors.Is(err, errCorrupt) {
							t.Errorf("%s, %s, %+v, %d of %d bytes: %v", s.name, f.name, o, n, len(packed), err)
						}
					}
				}
			}
		}
	}
}

// TestForeign has another decoder read what is written here.
func TestForeign(t *testing.T) {
	for _, s := range samples() {
		for _, o := range options {
			o.Deltas = nil
			packed := must.Get(EncodeXZ(nil, s.data, o))(t)
			r, err := xz.NewReader(bytes.NewReader(packed))
			if err != nil {
				t.Fatal(s.name, err)
			}
			if out, err := io.ReadAll(r); err != nil || !bytes.Equal(out, s.data) {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
}

// TestKnownLength decodes .lzma data that tell their length, with and without
// an end marker.
func TestKnownLength(t *testing.T) {
	data := ramp(5000)
	for _, marker := range []bool{false, true} {
		var b bytes.Buffer
		w := must.Get(lzma.WriterConfig{Size: int64(len(data)), EOSMarker: marker}.NewWriter(&b))(t)
		must.Get(w.Write(data))(t)
		must.Do(t, w.Close())
		if out, err := DecodeAlone(nil, b.Bytes(), 5000); err != nil || !bytes.Equal(out, data) {
			t.Errorf("marker %v: %v", marker, err)
		}
		for _, off := range []int{-1, 1} {
			wrong := bytes.Clone(b.Bytes())
			wrong[5] += byte(off)
			if _, err := DecodeAlone(nil, wrong, 1<<20); !errors.Is(err, errCorrupt) {
				t.Errorf("marker %v, length %+d: %v", marker, off, err)
			}
		}
	}
}

// TestGolden decodes what Python's lzma module has written, see
// testdata/generate.py.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/liblzma*")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	data := must.Get(os.ReadFile("testdata/data"))(t)
	for _, file := range files {
		packed, err := os.ReadFile(file)
		must.Do(t, err)
		var out []byte
		switch name := filepath.Ext(file); {
		case name == ".xz":
			out, err = DecodeXZ(nil, packed, 1<<20)
		case name == ".lzma":
			out, err = DecodeAlone(nil, packed, 1<<20)
		case name == ".raw1":
			out, err = DecodeRaw(nil, packed, options[0], 1<<20)
		case name == ".raw2":
			if out, err = DecodeLZMA2(nil, packed, options[0], 1<<20); strings.Contains(file, "delta4") {
				Undelta(out, []int{4})
			}
		}
		if strings.Contains(file, "x86") {
			if !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: %v", file, err)
			}
			continue
		}
		want := data
		if strings.Contains(file, "twice") {
			want = append(data[:len(data):len(data)], data...)
		}
		if err != nil || !bytes.Equal(out, want) {
			t.Errorf("%s: %d bytes, error %v; or they are wrong", file, len(out), err)
		}
	}
}

// TestDamage flips every bit of an .xz file: it is an error, or changes nothing.
// (The library does not compare the packed length of an LZMA2 chunk.)
func TestDamage(t *testing.T) {
	data := ramp(300)
	packed := must.Get(EncodeXZ(nil, data, options[2]))(t)
	for i := range packed {
		for k := range 8 {
			packed[i] ^= 1 << k
			if out, err := DecodeXZ(nil, packed, 1<<16); err == nil && !bytes.Equal(out, data) {
				t.Errorf("byte %d, bit %d: wrong data and no error", i, k)
			}
			packed[i] ^= 1 << k
		}
	}
}

// FuzzDecode feeds any bytes to all decoders: no panic, no error without a
// sentinel, and no more bytes than allowed.
func FuzzDecode(f *testing.F) {
	for _, o := range options {
		for _, form := range forms {
			packed := must.Get(form.encode(nil, ramp(500), o))(f)
			f.Add(packed)
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		const limit = 1 << 16
		for _, form := range forms {
			out, err := form.decode(nil, packed, options[0], limit)
			if err != nil && !errors.Is(err, errCorrupt) && !errors.Is(err, errTooLarge) && !errors.Is(err, ErrUnsupported) {
				t.Fatal(form.name, err)
			}
			if len(out) > limit {
				t.Fatalf("%s: %d bytes", form.name, len(out))
			}
		}
	})
}
