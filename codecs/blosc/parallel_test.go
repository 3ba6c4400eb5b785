package blosc

import (
	"bytes"
	"encoding/binary"
	"github.com/zarrdb/zarrdb/internal/must"
	"runtime"
	"testing"
)

// A long chunk is the same, and has the same errors, whether one goroutine decodes it
// or several do.
func TestParallelDecode(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	alone := func(f func()) {
		busy.Add(maxWorkers)
		defer busy.Add(-maxWorkers)
		f()
	}
	data := waves(5<<18 + 77)
	for _, c := range []string{"lz4", "zstd"} {
		frame := must.Get(Encode(nil, data, Params{c, 5, ByteShuffle, 4, 0}))(t)
		i, table, err := whole(frame)
		must.Do(t, err)
		if n := i.Size / i.BlockSize; n < 4 {
			t.Fatalf("%s: %d blocks", c, n)
		}
		for _, cut := range [][2]int64{{0, i.Size}, {1, i.Size - 1}, {i.BlockSize - 3, 3 * i.BlockSize}, {i.Size - 7, 7}} {
			got, err := i.decode([]byte("before"), table, frame, 0, cut[0], cut[1])
			if err != nil || !bytes.Equal(got, append([]byte("before"), data[cut[0]:cut[0]+cut[1]]...)) {
				t.Errorf("%s: %d bytes from %d on: %d, %v", c, cut[1], cut[0], len(got), err)
			}
		}
		for first := range i.Size / i.BlockSize {
			broken := bytes.Clone(frame)
			for k := first; k < i.Size/i.BlockSize; k += 2 {
				binary.LittleEndian.PutUint32(broken[headerSize+4*k:], uint32(len(frame)))
			}
			_, err := Decode(nil, broken, i.Size)
			var want error
			alone(func() { _, want = Decode(nil, broken, i.Size) })
			if err == nil || want == nil || err.Error() != want.Error() {
				t.Errorf("%s: %v, by one goroutine %v", c, err, want)
			}
		}
	}
	if n := busy.Load(); n != 0 {
		t.Errorf("%d processors are busy", n)
	}
}
