package txn

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkCheck measures a check in bytes of payloads, which a quick one does
// not read, for chunks of two sizes.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{4 << 10, 2 << 20} {
		const total = 512 << 20
		db, err := Create(b.TempDir()+"/db", &Options{Policy: toyPolicy{}, Durability: DurabilityNone})
		if err != nil {
			b.Fatal(err)
		}
		s, err := db.Begin(bg, "main")
		if err != nil {
			b.Fatal(err)
		}
		rng := rand.NewChaCha8([32]byte{})
		chunk := make([]byte, size)
		if err := s.Set(bg, "a/zarr.json", []byte("array f=c/:/:2")); err != nil {
			b.Fatal(err)
		}
		for i := range total / size {
			_, _ = rng.Read(chunk)
			if err := s.Set(bg, fmt.Sprintf("a/c/%d/%d", i/1000, i%1000), chunk); err != nil {
				b.Fatal(err)
			}
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
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckpoint measures a copy of an index of 100 MB.
func BenchmarkCheckpoint(b *testing.B) {
	db, err := Create(b.TempDir()+"/db", &Options{Durability: DurabilityNone, CheckpointCommits: -1})
	if err != nil {
		b.Fatal(err)
	}
	s, err := db.Begin(bg, "main")
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 400)
	for i := range 250_000 {
		copy(value, fmt.Sprint(i))
		if err := s.Set(bg, fmt.Sprintf("k%09d", i), value); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := db.Checkpoint(bg); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}
