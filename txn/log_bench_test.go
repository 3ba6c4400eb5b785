package txn

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkLog reads the newest thousand versions of many.
func BenchmarkLog(b *testing.B) {
	db, err := Create("db", testOptions(vfs.NewMem()))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for i := range 3000 {
		s, err := db.Begin(bg, "main")
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Set(bg, "k", fmt.Append(nil, i)); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	head, err := db.Head(bg, "main")
	if err != nil {
		b.Fatal(err)
	}
	for _, cached := range []bool{false, true} {
		b.Run(fmt.Sprintf("cached=%v", cached), func(b *testing.B) {
			for b.Loop() {
				if !cached {
					db.forgetCommits()
				}
				n := 0
				for _, err := range db.Log(bg, head) {
					if err != nil {
						b.Fatal(err)
					}
					if n++; n == 1000 {
						break
					}
				}
			}
		})
	}
}
