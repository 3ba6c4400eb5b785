package engine

import (
	"fmt"
	"sync"
	"testing"
)

// Grants that are made at the same time are all kept.
func TestGrantConcurrent(t *testing.T) {
	db := historyDB(t)
	const n = 16
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := db.Grant(Follow{Allow: []string{fmt.Sprintf("s3://b%d/", i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, err := db.Granted()
	if err != nil || len(f.Allow) != n {
		t.Errorf("%d grants are kept of %d (%v): %q", len(f.Allow), n, err, f.Allow)
	}
}
