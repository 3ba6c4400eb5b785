package blosc

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// The data of testdata/generate.py.

func lcg(x uint32) uint32 { return (x*1103515245 + 12345) % (1 << 31) }

func ramp(n int) []byte {
	var out []byte
	x, v := uint32(12345), uint32(0)
	for range n / 4 {
		x = lcg(x)
		v += x >> 16 % 4
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

func noise(n int) []byte {
	out := make([]byte, n)
	x := uint32(1)
	for i := range out {
		x = lcg(x)
		out[i] = byte(x >> 16)
	}
	return out
}

func goldenData(name string) []byte {
	switch name {
	case "ramp":
		return ramp(8000)
	case "noise":
		return noise(600)
	case "zeros":
		return make([]byte, 5000)
	case "tiny":
		return ramp(60)
	case "mixed":
		return slices.Concat(ramp(2000), noise(1000), ramp(1000))
	}
	return nil
}

type golden struct {
	name        string
	params      Params
	data, frame []byte
}

// goldens returns the frames that the C library has written.
func goldens(t testing.TB) []golden {
	t.Helper()
	files, err := filepath.Glob("testdata/numcodecs*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden frames: %v", err)
	}
	var out []golden
	for _, f := range files {
		part := strings.Split(filepath.Base(f), "-")
		number := func(i int) int {
			n, err := strconv.Atoi(part[i])
			if err != nil {
				t.Fatal(f, err)
			}
			return n
		}
		g := golden{name: filepath.Base(f), data: goldenData(part[6])}
		g.params = Params{Compressor: part[1], Level: number(2), Shuffle: Shuffle(number(3)), TypeSize: number(4), BlockSize: number(5)}
		g.data = g.data[:len(g.data)/g.params.TypeSize*g.params.TypeSize]
		g.frame = must.Get(os.ReadFile(f))(t)
		out = append(out, g)
	}
	return out
}

func TestGolden(t *testing.T) {
	for _, g := range goldens(t) {
		out, err := Decode([]byte("x"), g.frame, int64(len(g.data)))
		if err != nil || !bytes.Equal(out[1:], g.data) {
			t.Errorf("%s: %d bytes, error %v; or they are wrong", g.name, len(out), err)
		}
		i, err := Header(g.frame)
		name, p := strings.TrimSuffix(g.params.Compressor, "hc"), g.params
		if err != nil || i.Compressor != name || i.TypeSize != p.TypeSize || i.Shuffle != p.Shuffle || i.Size != int64(len(g.data)) || i.FrameSize != int64(len(g.frame)) {
			t.Errorf("%s: header %+v, error %v", g.name, i, err)
		}
	}
}

// TestSameFrames encodes as the C library did: header and blocks must agree,
// and with lz4, and where nothing is compressed, every byte.
func TestSameFrames(t *testing.T) {
	for _, g := range goldens(t) {
		out, err := Encode(nil, g.data, g.params)
		if err != nil {
			t.Fatal(g.name, err)
		}
		if g.params.Compressor == "lz4" || g.params.Level == 0 {
			if !bytes.Equal(out, g.frame) {
				t.Errorf("%s: the frame differs: %d bytes, should be %d", g.name, len(out), len(g.frame))
			}
			continue
		}
		if len(out) < len(g.frame) && g.frame[2]&flagStored != 0 {
			continue // the C library's blosclz gave up where ours did not
		}
		if !bytes.Equal(out[:12], g.frame[:12]) {
			t.Errorf("%s: header % x, should be % x", g.name, out[:12], g.frame[:12])
		}
		if len(out) > len(g.frame)*3/2 {
			t.Errorf("%s: %d bytes, the C library %d", g.name, len(out), len(g.frame))
		}
	}
}
