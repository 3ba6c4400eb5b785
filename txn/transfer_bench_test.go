package txn

import (
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkClone copies 100 k chunks of 1 KiB, and BenchmarkPush one of them that
// changed.
func BenchmarkClone(b *testing.B) {
	db := benchSource(b)
	b.SetBytes(100_000 << 10)
	for n := 0; b.Loop(); n++ {
		r, err := db.Clone(bg, filepath.Join(b.TempDir(), fmt.Sprint(n)), TransferOptions{})
		if err != nil || r.Verified != 100_000 {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkPush(b *testing.B) {
	db := benchSource(b)
	dir := filepath.Join(b.TempDir(), "copy")
	if _, err := db.Clone(bg, dir, TransferOptions{}); err != nil {
		b.Fatal(err)
	}
	to, err := Open(dir, &db.opts)
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	for n := 0; b.Loop(); n++ {
		s, err := db.Begin(bg, "main")
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Set(bg, fmt.Sprintf("x/c/%d", n*7919%100_000), []byte(big(fmt.Sprint("p", n), 1<<10))); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			b.Fatal(err)
		}
		r, err := db.Push(bg, to, TransferOptions{})
		if err != nil || r.Commits != 1 || r.Verified != 1 {
			b.Fatal(r, err)
		}
	}
}

func benchSource(b *testing.B) *DB {
	b.Helper()
	db, err := Create(filepath.Join(b.TempDir(), "db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	s, err := db.Begin(bg, "main")
	if err != nil {
		b.Fatal(err)
	}
	for i := range 100_000 {
		if err := s.Set(bg, fmt.Sprintf("x/c/%d", i), []byte(big(fmt.Sprint(i), 1<<10))); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		b.Fatal(err)
	}
	return db
}
