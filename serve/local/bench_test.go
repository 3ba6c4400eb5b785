package local

import (
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// benchView is a version with values of some sizes.
func benchView(b *testing.B, d *DialOptions) (*holder, *engine.Snapshot) {
	h, c := served(b, nil, d)
	put(b, h.db, map[string][]byte{"100": random(1, 100), "64K": random(2, 64<<10), "2M": random(3, 2<<20)})
	return h, version(b, c, "")
}

func benchGet(b *testing.B, d *DialOptions, key string) {
	_, v := benchView(b, d)
	must.Get(kv.Get(bg, v, key))(b)
	b.ReportAllocs()
	for b.Loop() {
		must.Get(v.Get(bg, key, kv.All()))(b)
	}
}

func BenchmarkGet100(b *testing.B)      { benchGet(b, nil, "100") }
func BenchmarkGet64K(b *testing.B)      { benchGet(b, nil, "64K") }
func BenchmarkGet2M(b *testing.B)       { benchGet(b, nil, "2M") }
func BenchmarkGet64KBytes(b *testing.B) { benchGet(b, &DialOptions{NoFiles: true}, "64K") }
func BenchmarkGet2MBytes(b *testing.B)  { benchGet(b, &DialOptions{NoFiles: true}, "2M") }
func BenchmarkView2M(b *testing.B)      { benchLocate(b, "2M") }
func BenchmarkView100(b *testing.B)     { benchLocate(b, "100") }

// benchLocate reads as arrays do: a value is located, and viewed in place.
func benchLocate(b *testing.B, key string) {
	_, v := benchView(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		value, err := v.Locate(bg, key)
		if err == nil {
			err = value.View(bg, kv.All(), func([]byte) error { return nil })
		}
		must.Do(b, err)
	}
}

// BenchmarkGetParallel has as many requests under way as there are processors.
func BenchmarkGetParallel(b *testing.B) {
	_, v := benchView(b, nil)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := v.Get(bg, "100", kv.All()); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkSet2M(b *testing.B) {
	_, c := served(b, nil, nil)
	s := begin(b, c)
	value := random(1, 2<<20)
	for b.Loop() {
		value[0]++
		must.Do(b, s.Set(bg, "k", value))
	}
}

// BenchmarkCommit writes one chunk and commits it.
func BenchmarkCommit(b *testing.B) {
	h, c := served(b, nil, nil)
	value := random(1, 1000)
	b.Run("socket", func(b *testing.B) {
		for b.Loop() {
			value[0]++
			s, err := beginOn(c)
			if err == nil {
				err = s.Set(bg, "k", value)
			}
			if err == nil {
				_, err = s.Commit(bg, txn.CommitOptions{})
			}
			if err == nil {
				err = s.Close()
			}
			must.Do(b, err)
		}
	})
	b.Run("process", func(b *testing.B) {
		for b.Loop() {
			value[0]++
			put(b, h.db, map[string][]byte{"k": value})
		}
	})
}
