package codecs_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strconv"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// bytesChain binds a chain of uint8 elements.
func bytesChain(t testing.TB, n int, more string) *codecs.Bound {
	return bind(t, `["bytes",`+more+`]`, dtype.NewUint(8), []int{n}, nil)
}

func stdGzip(t *testing.T, data []byte, header gzip.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Header = header
	must.Get(w.Write(data))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

func TestGzipMembers(t *testing.T) {
	data := []byte("some twenty-four bytes: ")
	b := bytesChain(t, len(data), gzip5)
	one := stdGzip(t, data, gzip.Header{Name: "a name", Comment: "a comment", Extra: []byte("extra")})
	two := append(stdGzip(t, data[:10], gzip.Header{}), stdGzip(t, data[10:], gzip.Header{})...)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name   string
		stored []byte
		ok     bool
	}{
		{"one member", one, true},
		{"two members", two, true},
		{"an empty member", join(two, stdGzip(t, nil, gzip.Header{})), true},
		{"padded with zeros", join(one, make([]byte, 500)), true},
		{"garbage", join(one, []byte("garbage")), false},
		{"zeros, then garbage", join(one, make([]byte, 9), []byte{1}), false},
		{"a member too many", join(one, one), false},
		{"a member too few", stdGzip(t, data[:10], gzip.Header{}), false},
		{"half a header", join(one, one[:5]), false},
		{"half a name", one[:20], false},
		{"zlib", func() []byte {
			var z bytes.Buffer
			w := zlib.NewWriter(&z)
			w.Write(data)
			w.Close()
			return z.Bytes()
		}(), false},
	} {
		got, err := b.Decode(nil, c.stored)
		if c.ok != (err == nil) || err == nil && !bytes.Equal(got, data) || err != nil && !errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("%s: %q (%v)", c.name, got, err)
		}
	}
}

// What the encoders write, the standard library reads; equal input gives equal
// bytes.
func TestDeflateLevels(t *testing.T) {
	elems := waves(5000)
	for level := -1; level <= 9; level++ {
		config := `"configuration":{"level":` + strconv.Itoa(level) + `}}`
		stored := must.Get(bytesChain(t, len(elems), `{"name":"numcodecs.zlib",`+config).Encode(nil, elems))(t)
		z := must.Get(zlib.NewReader(bytes.NewReader(stored)))(t)
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, elems) {
			t.Errorf("zlib level %d: %v", level, err)
		}
		stored = must.Get(bytesChain(t, len(elems), `{"name":"numcodecs.gzip",`+config).Encode(nil, elems))(t)
		g := must.Get(gzip.NewReader(bytes.NewReader(stored)))(t)
		if got, err := io.ReadAll(g); err != nil || !bytes.Equal(got, elems) {
			t.Errorf("gzip level %d: %v", level, err)
		}
		if !g.ModTime.IsZero() {
			t.Errorf("gzip level %d: a time", level)
		}
	}
}

// Every frame says how much it holds, which older readers need, and fits the
// window that every reader accepts.
func TestZstdFrames(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 1000, 1 << 16, 1 << 17, 1<<17 + 1, 9 << 20} {
		for _, config := range []string{`{"level":-7}`, `{"level":0}`, `{"level":1,"checksum":true}`, `{"level":9}`, `{"level":22}`} {
			if n > 1<<20 && config == `{"level":22}` {
				continue // seconds
			}
			elems := bytes.Repeat([]byte("some text."), n/10+1)[:n]
			b := bytesChain(t, n, `{"name":"zstd","configuration":`+config+`}`)
			stored := must.Get(b.Encode(nil, elems))(t)
			var h zstd.Header
			must.Do(t, h.Decode(stored))
			if !h.HasFCS || h.FrameContentSize != uint64(n) || !h.SingleSegment && h.WindowSize > 8<<20 {
				t.Errorf("%d bytes, %s: %+v", n, config, h)
			}
			if want := bytes.Contains([]byte(config), []byte("checksum")) && n > 0; h.HasCheckSum != want {
				t.Errorf("%d bytes, %s: checksum %v", n, config, h.HasCheckSum)
			}
			if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, elems) {
				t.Errorf("%d bytes, %s: %v", n, config, err)
			}
		}
	}
}

// Frames without a size, several frames, and frames that are to be skipped.
func TestZstdForeign(t *testing.T) {
	elems := waves(50000)
	var stream bytes.Buffer
	w := must.Get(zstd.NewWriter(&stream))(t)
	must.Get(w.Write(elems))(t)
	must.Do(t, w.Close())
	half := len(elems) / 2
	frames := append(w.EncodeAll(elems[:half], nil), w.EncodeAll(elems[half:], nil)...)
	skip := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0}, "skip"...)
	text := must.Get(builtin.Registry().ParseV3([]byte(`["vlen-bytes",` + zstd3 + `]`)))(t)
	items := must.Get(text.Bind(codecs.Rep{Type: dtype.NewBytes(), Shape: []int{1}}))(t)
	b := bytesChain(t, len(elems), zstd3)
	for name, stored := range map[string][]byte{
		"stream": stream.Bytes(), "frames": frames, "skip": append(skip, frames...), "skip behind": append(frames[:len(frames):len(frames)], skip...),
	} {
		if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, elems) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The same where the size is not known.
	stream.Reset()
	w.Reset(&stream)
	head := binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(elems)))
	must.Get(w.Write(append(head, elems...)))(t)
	must.Do(t, w.Close())
	if got, err := items.Decode(nil, stream.Bytes()); err != nil || !bytes.Equal(got[8:], elems) {
		t.Errorf("variable length: %v", err)
	}
}

// Chunks that hold less than a thousandth of what they decode to are no
// bombs if the metadata say so.
func TestHighlyCompressible(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("150 MiB")
	}
	elems := make([]byte, 150<<20)
	for _, codec := range []string{zstd3, gzip5} {
		b := bytesChain(t, len(elems), codec)
		stored := must.Get(b.Encode(nil, elems))(t)
		if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, elems) {
			t.Errorf("%s: %v", codec, err)
		}
	}
}

// bombs decode to 16 MiB.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	zeros := make([]byte, 16<<20)
	all := map[string][]byte{"gzip": stdGzip(t, zeros, gzip.Header{})}
	var z bytes.Buffer
	zw := zlib.NewWriter(&z)
	must.Get(zw.Write(zeros))(t)
	must.Do(t, zw.Close())
	all["numcodecs.zlib"] = z.Bytes()
	w := must.Get(zstd.NewWriter(nil))(t)
	all["zstd"] = w.EncodeAll(zeros, nil)
	return all
}

func TestBombs(t *testing.T) {
	all := bombs(t)
	// A zstd stream does not even say how much it holds.
	var stream bytes.Buffer
	w, err := zstd.NewWriter(&stream)
	must.Do(t, err)
	must.Get(w.Write(make([]byte, 16<<20)))(t)
	must.Do(t, w.Close())
	check := func(name, codec string, stored []byte) {
		b := bytesChain(t, 256, `{"name":"`+codec+`","configuration":{"level":1}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := b.Decode(nil, stored)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: allocated %d bytes for 256", name, n)
		}
	}
	for codec, stored := range all {
		check(codec, codec, stored)
	}
	check("zstd stream", "zstd", stream.Bytes())
	// Bombs in bombs, and where the size of what comes out is not known.
	nested := bytesChain(t, 256, zstd3+`,`+gzip5)
	if _, err := nested.Decode(nil, all["gzip"]); !errors.Is(err, codecs.ErrCorrupt) {
		t.Errorf("nested: %v", err)
	}
	c, err := builtin.Registry().ParseV3([]byte(`["vlen-utf8",` + zstd3 + `]`))
	must.Do(t, err)
	text, err := c.Bind(codecs.Rep{Type: dtype.NewString(), Shape: []int{3}, Max: 1 << 20})
	must.Do(t, err)
	if _, err := text.Decode(nil, all["zstd"]); !errors.Is(err, codecs.ErrCorrupt) {
		t.Errorf("variable length: %v", err)
	}
}

// Strings in a frame of zstd that does not say how much it holds, which is far more than
// the frame. The decoder calls that corrupt where it is given too little space.
func TestZstdShrinksMuch(t *testing.T) {
	text := must.Get(builtin.Registry().ParseV3([]byte(`["vlen-bytes",` + zstd3 + `]`)))(t)
	items := must.Get(text.Bind(codecs.Rep{Type: dtype.NewBytes(), Shape: []int{1}}))(t)
	for _, n := range []int{1, 20, 1000, 90_000} {
		want := bytes.Repeat([]byte("abcdefghijk"), n)
		var stream bytes.Buffer
		w, err := zstd.NewWriter(&stream)
		must.Do(t, err)
		_, err = w.Write(append(binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(want))), want[:len(want)/2]...))
		err = errors.Join(err, w.Flush())
		_, werr := w.Write(want[len(want)/2:])
		must.Do(t, errors.Join(err, werr, w.Close()))
		if got, err := items.Decode(nil, stream.Bytes()); err != nil || !bytes.Equal(got[8:], want) {
			t.Errorf("%d bytes from %d: %v", len(want), stream.Len(), err)
		}
		if _, err := items.Decode(nil, stream.Bytes()[:stream.Len()-2]); !errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("a frame that is cut: %v", err)
		}
	}
}

// A codec whose own errors begin with its name is named once.
func TestCorruptNamesCodecOnce(t *testing.T) {
	text := codecs.Corruptf("blosc", "%w", errors.New("blosc: corrupt frame")).Error()
	if text != "codecs: corrupt data: blosc: corrupt frame" {
		t.Error(text)
	}
}
