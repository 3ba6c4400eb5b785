package blosc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

var compressors = []string{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}

// waves is float32 data as measurements are: smooth with noise, rounded to
// three decimals.
func waves(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, 0, 4*n)
	for i := range n {
		v := 10*math.Sin(float64(i)/300) + 5*math.Sin(float64(i)/37) + 0.05*r.NormFloat64()
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(math.Round(v*1000)/1000)))
	}
	return out
}

// each calls f with a spread of parameters.
func each(f func(p Params)) {
	for _, c := range compressors {
		for _, level := range []int{0, 1, 5, 9} {
			for shuffle := NoShuffle; shuffle <= BitShuffle; shuffle++ {
				for _, size := range []int{1, 2, 3, 4, 8, 16, 17, 255, 256} {
					for _, block := range []int{0, 1000} {
						if level == 9 && size != 4 {
							continue
						}
						f(Params{c, level, shuffle, size, block})
					}
				}
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty": nil, "one": {1}, "127": ramp(128)[:127], "128": ramp(128), "ramp": ramp(9000), "odd": ramp(9000)[:8191],
		"noise": noise(3000), "zeros": make([]byte, 70_000), "mixed": append(noise(2000), ramp(70_000)...),
	} {
		each(func(p Params) {
			frame, err := Encode([]byte("x"), data, p)
			if err != nil {
				t.Fatal(name, p, err)
			}
			if frame = frame[1:]; len(frame) > len(data)+headerSize {
				t.Fatalf("%s, %+v: %d bytes for %d", name, p, len(frame), len(data))
			}
			// Bytes behind what the result takes must stay.
			dst := append(make([]byte, 0, len(data)+100), "x"...)
			behind := dst[:cap(dst)][1+len(data):]
			copy(behind, "behind")
			out, err := Decode(dst, frame, int64(len(data)))
			if err != nil || !bytes.Equal(out[1:], data) || !bytes.HasPrefix(behind, []byte("behind")) {
				t.Fatalf("%s, %+v: %d bytes, error %v; or they are wrong", name, p, len(out), err)
			}
			if len(data) == 0 {
				return
			}
			if _, err := Decode(nil, frame, int64(len(data)-1)); !errors.Is(err, errTooLarge) {
				t.Fatalf("%s, %+v, one byte too little: %v", name, p, err)
			}
			for _, bad := range [][]byte{frame[:len(frame)-1], append(bytes.Clone(frame), 0)} {
				if _, err := Decode(nil, bad, 1<<20); !errors.Is(err, errCorrupt) {
					t.Fatalf("%s, %+v, %d of %d bytes: %v", name, p, len(bad), len(frame), err)
				}
			}
		})
	}
}

// checkRanges decodes parts of a frame that holds data, and from parts of it.
func checkRanges(t *testing.T, name string, frame, data []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(len(frame)), 3))
	info := must.Get(Header(frame))(t)
	x, err := NewIndex(bytes.Clone(frame[:info.IndexSize()]), int64(len(frame)))
	if err != nil {
		t.Fatal(name, err)
	}
	for range 20 {
		off := r.Int64N(int64(len(data)) + 1)
		n := r.Int64N(int64(len(data)) - off + 1)
		lo, hi := x.Encoded(off, n)
		part := bytes.Clone(frame[lo:hi])
		out, err := x.DecodeRange([]byte("x"), part, lo, off, n)
		if err != nil || !bytes.Equal(out[1:], data[off:off+n]) {
			t.Fatalf("%s, %d bytes from %d, out of %d to %d: error %v, or wrong", name, n, off, lo, hi, err)
		}
	}
	for _, bad := range [][2]int64{{-1, 1}, {0, -1}, {0, x.Size + 1}, {x.Size, 1}, {1, math.MaxInt64}, {math.MaxInt64, 1}} {
		if _, err := x.DecodeRange(nil, frame, 0, bad[0], bad[1]); !errors.Is(err, errCorrupt) {
			t.Errorf("%s, %d bytes from %d: %v", name, bad[1], bad[0], err)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, g := range goldens(t) {
		checkRanges(t, g.name, g.frame, g.data)
	}
	// Blocks in another order, as threads write them.
	data := ramp(8000)
	frame := must.Get(Encode(nil, data, Params{"lz4", 5, ByteShuffle, 4, 500}))(t)
	x := must.Get(NewIndex(frame, int64(len(frame))))(t)
	n, head := len(x.ends), int(x.IndexSize())
	swapped := bytes.Clone(frame[:head])
	for i := n - 1; i >= 0; i-- {
		start := binary.LittleEndian.Uint32(frame[headerSize+4*i:])
		binary.LittleEndian.PutUint32(swapped[headerSize+4*i:], uint32(len(swapped)))
		swapped = append(swapped, frame[start:x.ends[i]]...)
	}
	checkRanges(t, "backwards", swapped, data)
	if out, err := Decode(nil, swapped, 8000); err != nil || !bytes.Equal(out, data) {
		t.Errorf("backwards: %v", err)
	}
	lo, hi := x.Encoded(3500, 1000)
	if want := int64(len(frame)) / 3; hi-lo > want {
		t.Errorf("1000 bytes of 8000 need %d of %d", hi-lo, len(frame))
	}
}

func TestHostile(t *testing.T) {
	// A frame that is neither stored nor split, of several blocks.
	good, err := Encode(nil, ramp(4000), Params{"lz4", 5, ByteShuffle, 4, 500})
	if err != nil || mustHeader(t, good).Stored {
		t.Fatal(err)
	}
	put := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	set := func(at int, v byte) func([]byte) { return func(b []byte) { b[at] = v } }
	start := binary.LittleEndian.Uint32(good[headerSize:])
	for name, damage := range map[string]func(b []byte){
		"format version":         set(0, 3),
		"stream version":         set(1, 2),
		"reserved flag":          func(b []byte) { b[2] |= 8 },
		"compressor":             func(b []byte) { b[2] |= 0xe0 },
		"stored":                 func(b []byte) { b[2] |= 2 },
		"type size":              set(3, 0),
		"size huge":              put(4, 0x7fffffff),
		"size negative":          put(4, 0xffffffff),
		"block size 0":           put(8, 0),
		"block size huge":        put(8, 0x7fffffff),
		"block size 1":           put(8, 1),
		"frame size small":       put(12, 15),
		"frame size wrong":       put(12, uint32(len(good)+1)),
		"block start 0":          put(headerSize+4, 0),
		"block start negative":   put(headerSize+4, 0xfffffff0),
		"block start at the end": put(headerSize+4, uint32(len(good)-3)),
		"stream size huge":       put(int(start), 0x7fffffff),
		"stream size negative":   put(int(start), 0xffffffff),
		"stream size 0":          put(int(start), 0),
	} {
		bad := bytes.Clone(good)
		damage(bad)
		dst := []byte("x")
		out, err := Decode(dst, bad, 1<<31)
		if !errors.Is(err, errCorrupt) || !bytes.Equal(out, dst) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mustHeader is Header of a frame that is right.
func mustHeader(t *testing.T, frame []byte) Info {
	t.Helper()
	i := must.Get(Header(frame))(t)
	return i
}

func TestParams(t *testing.T) {
	good := Params{"lz4", 5, ByteShuffle, 4, 0}
	for name, change := range map[string]func(*Params){
		"compressor":   func(p *Params) { p.Compressor = "lzma" },
		"level":        func(p *Params) { p.Level = 10 },
		"level below":  func(p *Params) { p.Level = -1 },
		"shuffle":      func(p *Params) { p.Shuffle = 3 },
		"shuffle auto": func(p *Params) { p.Shuffle = -1 },
		"type size":    func(p *Params) { p.TypeSize = 0 },
		"block size":   func(p *Params) { p.BlockSize = -1 },
	} {
		p := good
		change(&p)
		if _, err := Encode(nil, ramp(1000), p); !errors.Is(err, errParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.frame)
	}
	snappy := must.Get(Encode(nil, ramp(2000), Params{"snappy", 5, ByteShuffle, 4, 500}))(f)
	f.Add(snappy)
	f.Fuzz(func(t *testing.T, frame []byte) {
		out, err := Decode(nil, frame, 1<<16)
		if err == nil {
			checkRanges(t, "fuzz", frame, out)
		} else if !errors.Is(err, errCorrupt) && !errors.Is(err, errTooLarge) {
			t.Fatal(err)
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add(ramp(1000), 4, 1, 5, 1, 0)
	f.Add(noise(300), 2, 2, 9, 0, 150)
	f.Fuzz(func(t *testing.T, data []byte, size, shuffle, level, compressor, block int) {
		if compressor < 0 {
			return
		}
		p := Params{compressors[compressor%len(compressors)], level, Shuffle(shuffle), size, block}
		frame, err := Encode(nil, data, p)
		if err != nil {
			return
		}
		out, err := Decode(nil, frame, int64(len(data)))
		if err != nil || !bytes.Equal(out, data) {
			t.Fatalf("%+v: %d of %d bytes, error %v", p, len(out), len(data), err)
		}
	})
}

// TestPython has numcodecs read frames of every kind, with the Python that
// ZARRDB_PYTHON names.
func TestPython(t *testing.T) {
	python := os.Getenv("ZARRDB_PYTHON")
	if python == "" {
		t.Skip("ZARRDB_PYTHON is not set")
	}
	dir := t.TempDir()
	type job struct{ Frame, Data string }
	var jobs []job
	for name, data := range map[string][]byte{"ramp": ramp(9000)[:8191], "noise": noise(3000), "long": append(ramp(700_000), noise(5000)...)} {
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, data, 0o644))
		each(func(p Params) {
			if p.Compressor == "snappy" || len(data) > 10_000 && p.TypeSize != 4 {
				return // not built into numcodecs; slow
			}
			frame := must.Get(Encode(nil, data, p))(t)
			f := filepath.Join(dir, fmt.Sprintf("%s-%+v", name, p))
			must.Do(t, os.WriteFile(f, frame, 0o644))
			jobs = append(jobs, job{f, file})
		})
	}
	list := must.Get(json.Marshal(jobs))(t)
	cmd := exec.Command(python, "-c", `
import json, sys
from numcodecs import blosc
for j in json.load(sys.stdin):
    if blosc.decompress(open(j["Frame"], "rb").read()) != open(j["Data"], "rb").read():
        sys.exit(j["Frame"])
`)
	cmd.Stdin = bytes.NewReader(list)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d frames", len(jobs))
}
