package pack

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// BenchmarkAppend appends and syncs every 64 MiB, the sync included.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{300, 4 << 10, 64 << 10, 2 << 20} {
		for _, par := range []int{1, 2} {
			b.Run(fmt.Sprintf("%dB/%d", n, par), func(b *testing.B) {
				s := mustOpen(b, filepath.Join(b.TempDir(), "packs"), options(osfs.FS))
				defer mustClose(b, s)
				every := (64 << 20) / n
				b.SetBytes(int64(n))
				b.SetParallelism(max(1, par/2))
				owner := Owner{Key: []byte("0/1/2")}
				one := func(i int) {
					off := i * 4096 % (len(noise) - n)
					if _, err := s.Append(bg, owner, noise[off:off+n]); err != nil {
						b.Error(err)
					}
					if i%every == every-1 {
						infos, err := s.Sync(bg)
						if err != nil {
							b.Error(err)
						}
						s.Recorded(infos)
					}
				}
				if par == 1 {
					i := 0
					for b.Loop() {
						one(i)
						i++
					}
				} else {
					b.RunParallel(func(pb *testing.PB) {
						for i := 0; pb.Next(); i++ {
							one(i)
						}
					})
				}
				if _, err := s.Sync(bg); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkView reads at random places of 256 MiB that the system has cached.
func BenchmarkView(b *testing.B) {
	for _, n := range []int{4 << 10, 64 << 10, 2 << 20} {
		dir := filepath.Join(b.TempDir(), "packs")
		s := mustOpen(b, dir, options(osfs.FS))
		var list []Address
		for i := range (256 << 20) / n {
			off := i * 4096 % (len(noise) - n)
			a, err := s.Append(bg, Owner{}, noise[off:off+n])
			must.Do(b, err)
			list = append(list, a)
		}
		infos, err := s.Sync(bg)
		must.Do(b, err)
		mustClose(b, s)
		for _, c := range []struct {
			name string
			o    Options
		}{
			{"map", Options{}},
			{"pread", Options{MapBytes: -1}},
		} {
			c.o.Table, c.o.ReadOnly = infos, true
			s := mustOpen(b, dir, &c.o)
			dst := make([]byte, n)
			run := func(name string, read func(a Address) error) {
				b.Run(fmt.Sprintf("%dB/%s/%s", n, c.name, name), func(b *testing.B) {
					rng := rand.New(rand.NewPCG(1, 1))
					b.SetBytes(int64(n))
					b.ReportAllocs()
					for b.Loop() {
						must.Do(b, read(list[rng.IntN(len(list))]))
					}
				})
			}
			// View copies too, as a decoder would read everything once.
			fn := func(v []byte) error { copy(dst, v); return nil }
			run("view", func(a Address) error { return s.View(bg, a, 0, a.Length, fn) })
			mustClose(b, s)
		}
	}
}

// BenchmarkSync is the pack half of a commit of one small chunk.
func BenchmarkSync(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "packs"), options(osfs.FS))
	defer mustClose(b, s)
	for b.Loop() {
		if _, err := s.Append(bg, Owner{}, noise[:4096]); err != nil {
			b.Fatal(err)
		}
		infos, err := s.Sync(bg)
		must.Do(b, err)
		s.Recorded(infos)
	}
}
