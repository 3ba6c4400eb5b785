package virtual

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

// Where the bytes are at another place than their URL says, times say nothing,
// but sizes do.
func TestCheckVersion(t *testing.T) {
	for _, c := range []struct {
		was, now string
		mapped   bool
		ok       bool
	}{
		{"", "mtime:1 size:2", false, true},
		{"mtime:1 size:2", "mtime:1 size:2", false, true},
		{"mtime:1 size:2", "mtime:2 size:2", false, false},
		{"mtime:1 size:2", "mtime:2 size:2", true, true},
		{"mtime:1 size:2", "mtime:2 size:3", true, false},
		{`etag:"x" size:2`, "mtime:2 size:2", true, true},
		{`etag:"x" size:2`, "mtime:2 size:2", false, false},
		{`etag:"x" size:2`, "mtime:2 size:12", true, false},
		{`etag:"x"`, "mtime:2 size:12", true, true},
		{`etag:"x"`, "", false, false},
		{`etag:"x"`, "", true, false},
	} {
		if err := checkVersion(c.was, c.now, c.mapped); (err == nil) != c.ok || err != nil && !errors.Is(err, kv.ErrChanged) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestPartIDs gives parts of files other identities than any other part.
func TestPartIDs(t *testing.T) {
	seen := map[kv.ID]string{}
	for _, url := range []string{"", "a", "ab", "file:///a"} {
		for _, validator := range []string{"b", "", "bc", "mtime:1 size:2"} {
			for _, offset := range []uint64{0, 1, 1 << 40} {
				for _, length := range []uint64{0, 1, 128} {
					what := fmt.Sprintf("%q %q %d %d", url, validator, offset, length)
					id := partID(url, validator, offset, length)
					if other, ok := seen[id]; ok {
						t.Errorf("%s and %s are one", what, other)
					}
					seen[id] = what
				}
			}
		}
	}
}
