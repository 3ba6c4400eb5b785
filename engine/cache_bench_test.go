package engine

import (
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkReadThin reads a line through 8 chunks of 2 MiB, and one element, over
// and over, with no read of a whole chunk before.
func BenchmarkReadThin(b *testing.B) {
	db, err := Create(bg, b.TempDir()+"/t.zdb", nil)
	must.Do(b, err)
	defer db.Close()
	const compressed = `[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":4,"blocksize":0}}]`
	if _, err := db.Update(bg, "", "w", func(s *Session) error {
		a, err := s.CreateArray(bg, "a", zarr.Spec{Shape: []int64{800, 72, 72}, Chunks: []int64{100, 72, 72}, DataType: "float32", Codecs: []byte(compressed)})
		if err != nil {
			return err
		}
		data := make([]float32, 800*72*72)
		for i := range data {
			data[i] = float32(i % 1000)
		}
		return zarr.Write(bg, a, zarr.Sel(), data)
	}); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		time zarr.Index
		n    int64
	}{{"line", zarr.All(), 800}, {"element", zarr.Slice(5, 6, 1), 1}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := db.At(bg, "")
			must.Do(b, err)
			defer s.Close()
			a, err := s.Array(bg, "a")
			must.Do(b, err)
			dst := make([]float32, c.n)
			sel := zarr.Sel(c.time, zarr.At(3), zarr.At(5))
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, zarr.ReadInto(bg, a, sel, dst))
			}
		})
	}
}
