package txn

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// BenchmarkLog reads the newest thousand versions of many.
func BenchmarkLog(b *testing.B) {
	db, err := Create("db", testOptions(vfs.NewMem()))
	must.Do(b, err)
	defer db.Close()
	for i := range 3000 {
		s, err := db.Begin(bg, "main")
		must.Do(b, err)
		must.Do(b, s.Set(bg, "k", fmt.Append(nil, i)))
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	head, err := db.Head(bg, "main")
	must.Do(b, err)
	for _, cached := range []bool{false, true} {
		b.Run(fmt.Sprintf("cached=%v", cached), func(b *testing.B) {
			for b.Loop() {
				if !cached {
					db.forgetCommits()
				}
				n := 0
				for _, err := range db.Log(bg, head) {
					must.Do(b, err)
					if n++; n == 1000 {
						break
					}
				}
			}
		})
	}
}
