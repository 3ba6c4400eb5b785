package txn

import (
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math/rand/v2"
	"testing"
)

// BenchmarkCheck measures a check in bytes of payloads, which a quick one does
// not read, for chunks of two sizes.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{4 << 10, 2 << 20} {
		const total = 512 << 20
		db, err := Create(b.TempDir()+"/db", &Options{Policy: toyPolicy{}, Durability: DurabilityNone})
		must.Do(b, err)
		s, err := db.Begin(bg, "main")
		must.Do(b, err)
		rng := rand.NewChaCha8([32]byte{})
		chunk := make([]byte, size)
		must.Do(b, s.Set(bg, "a/zarr.json", []byte("array f=c/:/:2")))
		for i := range total / size {
			_, _ = rng.Read(chunk)
			must.Do(b, s.Set(bg, fmt.Sprintf("a/c/%d/%d", i/1000, i%1000), chunk))
		}
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			b.Fatal(err)
		}
		for _, full := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dKiB/full=%v", size>>10, full), func(b *testing.B) {
				b.SetBytes(total)
				for b.Loop() {
					r, err := db.Check(bg, CheckOptions{Payloads: full})
					if err != nil || r.Found > 0 || r.Payloads != int64(total/size) {
						b.Fatal(err, r)
					}
				}
			})
		}
		must.Do(b, db.Close())
	}
}

// BenchmarkCheckpoint measures a copy of an index of 100 MB.
func BenchmarkCheckpoint(b *testing.B) {
	db, err := Create(b.TempDir()+"/db", &Options{Durability: DurabilityNone, CheckpointCommits: -1})
	must.Do(b, err)
	s, err := db.Begin(bg, "main")
	must.Do(b, err)
	value := make([]byte, 400)
	for i := range 250_000 {
		copy(value, fmt.Sprint(i))
		must.Do(b, s.Set(bg, fmt.Sprintf("k%09d", i), value))
	}
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		must.Do(b, db.Checkpoint(bg))
	}
	must.Do(b, db.Close())
}
