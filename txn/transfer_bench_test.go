package txn

import (
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
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
	must.Do(b, err)
	defer to.Close()
	for n := 0; b.Loop(); n++ {
		s, err := db.Begin(bg, "main")
		must.Do(b, err)
		must.Do(b, s.Set(bg, fmt.Sprintf("x/c/%d", n*7919%100_000), []byte(big(fmt.Sprint("p", n), 1<<10))))
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
	db := must.Get(Create(filepath.Join(b.TempDir(), "db"), nil))(b)
	b.Cleanup(func() { _ = db.Close() })
	s := must.Get(db.Begin(bg, "main"))(b)
	for i := range 100_000 {
		must.Do(b, s.Set(bg, fmt.Sprintf("x/c/%d", i), []byte(big(fmt.Sprint(i), 1<<10))))
	}
	must.Get(s.Commit(bg, CommitOptions{}))(b)
	return db
}
