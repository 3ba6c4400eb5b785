package dirkv

import (
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

func BenchmarkGet(b *testing.B) {
	for name, size := range map[string]int{"4KiB": 4 << 10, "2MiB": 2 << 20} {
		s, err := Open(b.TempDir(), &Options{NoSync: true})
		must.Do(b, err)
		defer s.Close()
		const key = "group/array/c/0/1/2"
		must.Do(b, s.Set(ctx, key, []byte(strings.Repeat("x", size))))
		b.Run("Get/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Get(ctx, key, kv.All()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("LocateView/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				v, err := s.Locate(ctx, key)
				if err == nil {
					err = v.View(ctx, kv.All(), func([]byte) error { return nil })
				}
				must.Do(b, err)
			}
		})
	}
}
