package zipkv

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	var out bytes.Buffer
	z := NewWriter(&out)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("array/c/%d/%d", 1000+i/1000, 1000+i%1000)
	}
	b.Run("write 1M members", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out.Reset()
			z = NewWriter(&out)
			for _, key := range keys {
				must.Do(b, z.Set(ctx, key, []byte("12345678")))
			}
			must.Do(b, z.Close())
		}
	})
	var r *Reader
	b.Run("open 1M members", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if r, err = Open(ctx, kv.Bytes(out.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get of 1M", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			if _, err := r.Get(ctx, keys[i%n], kv.All()); err != nil {
				b.Fatal(err)
			}
			i += 7919
		}
	})
}

func BenchmarkInflate(b *testing.B) {
	value := make([]byte, 2<<20)
	for i := range value {
		value[i] = byte(i*i>>7) & 0x3f
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create("k")
	if err == nil {
		_, err = w.Write(value)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		b.Fatal(err)
	}
	r, err := Open(ctx, kv.Bytes(out.Bytes()))
	must.Do(b, err)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Get(ctx, "k", kv.All()); err != nil {
			b.Fatal(err)
		}
	}
}
