package zstd

import (
	"bytes"
	"math/rand/v2"
	"testing"

	library "github.com/klauspost/compress/zstd"
	"github.com/zarrdb/zarrdb/internal/must"
)

// newDecoder returns a decoder with assembly, where there is one.
func newDecoder() *Decoder { return &Decoder{replay: replay{plain: !hasReplay}} }

// frames calls fn with contents and frames of several encoders and levels.
func frames(t testing.TB, fn func(src, frame []byte)) {
	r := rand.New(rand.NewPCG(21, 22))
	var own Encoder
	var theirs []*library.Encoder
	for level := library.SpeedFastest; level <= library.SpeedBestCompression; level++ {
		e := must.Get(library.NewWriter(nil, library.WithEncoderConcurrency(1), library.WithEncoderLevel(level), library.WithEncoderCRC(false),
			library.WithAllLitEntropyCompression(true), library.WithSingleSegment(level%2 == 0)))(t)
		theirs = append(theirs, e)
	}
	each := func(src []byte) {
		fn(src, own.Encode(nil, src))
		for _, e := range theirs {
			fn(src, e.EncodeAll(src, nil))
		}
	}
	for _, n := range []int{1, 2, 10, 31, 32, 100, 255, 256, 1000, 5000, 1 << 16, blockBytes, blockBytes + 1, 3*blockBytes + 77} {
		each(mixed(r, n))
		each(planes(floats(n / 4)))
		each(bytes.Repeat([]byte{1}, n))
		for period := 1; period < 40; period += 1 + period/17 { // matches that overlap themselves
			src := bytes.Repeat(mixed(r, period), n/period+1)[:n]
			for range n / 300 {
				src[r.IntN(n)]++
			}
			each(src)
		}
	}
}

// TestDecode compares with and without assembly, with and without room behind the contents.
func TestDecode(t *testing.T) {
	used := newDecoder()
	seen := 0
	frames(t, func(src, frame []byte) {
		if _, _, ok := readHeader(frame); !ok {
			return
		}
		seen++
		for _, room := range []int{0, 1, slack} {
			for _, d := range []*Decoder{used, newDecoder(), {replay: replay{plain: true}}} {
				dst := append(make([]byte, 0, 3+len(src)+room), "abc"...)
				out, ok := d.Decode(dst, frame)
				if !ok || string(out[:3]) != "abc" || !bytes.Equal(out[3:], src) {
					t.Fatalf("%d bytes in %d, room %d, plain %v: ok %v, or other bytes", len(src), len(frame), room, d.replay.plain, ok)
				}
			}
		}
		if out, ok := used.Decode(make([]byte, 0, max(0, len(src)-1)), frame); len(src) > 0 && ok || len(out) > 0 {
			t.Fatalf("%d bytes fit %d", len(src), len(src)-1)
		}
	})
	if seen < 500 {
		t.Errorf("%d frames", seen)
	}
}

// agree decodes what may be damaged, and compares with the library.
func agree(t testing.TB, d *library.Decoder, own, plain *Decoder, frame []byte, most int) {
	t.Helper()
	const fence = 0xa5
	mem := bytes.Repeat([]byte{fence}, most+100)
	out, ok := own.Decode(mem[:0:most], frame)
	for i, c := range mem[most:] {
		if c != fence {
			t.Fatalf("byte %d behind the capacity is written", i)
		}
	}
	same, also := plain.Decode(make([]byte, 0, most), frame)
	if ok != also || !bytes.Equal(out, same) {
		t.Fatalf("with assembly %v, %d bytes; without %v, %d; or they differ", ok, len(out), also, len(same))
	}
	if !ok {
		if len(out) > 0 {
			t.Fatalf("%d bytes of a frame that is refused", len(out))
		}
		return
	}
	want, err := d.DecodeAll(frame, nil)
	if err != nil || !bytes.Equal(want, out) {
		t.Fatalf("%d bytes; the library has %d, error %v; or they differ", len(out), len(want), err)
	}
}

func TestDecodeDamaged(t *testing.T) {
	d := decoder(t)
	r := rand.New(rand.NewPCG(31, 32))
	own, plain := newDecoder(), &Decoder{replay: replay{plain: true}}
	refused := 0
	frames(t, func(src, frame []byte) {
		if len(src) > blockBytes+1 || r.IntN(4) > 0 {
			return
		}
		for range 12 {
			bad := bytes.Clone(frame)
			switch r.IntN(4) {
			case 0:
				bad = bad[:r.IntN(len(bad))]
			case 1:
				bad = append(bad, byte(r.Uint32()))
			default:
				for range 1 + r.IntN(3) {
					bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
				}
			}
			agree(t, d, own, plain, bad, len(src)+r.IntN(40))
			if _, ok := own.Decode(make([]byte, 0, len(src)), bad); !ok {
				refused++
			}
			agree(t, d, own, plain, frame, len(src)) // what was used for damaged frames
		}
	})
	if refused < 1000 {
		t.Errorf("only %d frames are damaged", refused)
	}
}

// A window that other decoders refuse is refused here too, although it is not needed.
func TestWindows(t *testing.T) {
	for log := range 32 {
		const n = 300
		frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 1 << 6, byte(log << 3), n - 256, 0, n<<3&0xff | kindRepeated<<1 | 1, n >> 5, 0, 'x'}
		if _, ok := (&Decoder{replay: replay{plain: true}}).Decode(make([]byte, 0, n), frame); ok != (10+log <= 31) {
			t.Errorf("window of 1<<%d: %v", 10+log, ok)
		}
	}
}

func FuzzDecode(f *testing.F) {
	n := 0
	frames(f, func(src, frame []byte) {
		if n++; n%50 == 0 && len(src) < 1<<13 {
			f.Add(frame)
		}
	})
	d := decoder(f)
	own, plain := newDecoder(), &Decoder{replay: replay{plain: true}}
	f.Fuzz(func(t *testing.T, frame []byte) { agree(t, d, own, plain, frame, 1<<18) })
}

func BenchmarkDecode(b *testing.B) {
	src := planes(floats(blockBytes / 4))
	frame := new(Encoder).Encode(nil, src)
	dst := make([]byte, 0, len(src)+slack)
	b.Run("own", func(b *testing.B) {
		d := newDecoder()
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if _, ok := d.Decode(dst, frame); !ok {
				b.Fatal("no")
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		d := decoder(b)
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if _, err := d.DecodeAll(frame, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}
