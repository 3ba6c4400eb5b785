package virtual

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/kv"
)

// stamped is a file of which only the version is asked.
type stamped struct {
	kv.Value
	validator string
	stamp     kv.Stamp
}

func (s stamped) Validator() string { return s.validator }
func (s stamped) Stamp() kv.Stamp   { return s.stamp }

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
		{"if-match:x", "mtime:1 size:2", false, true},
		{"if-match:y", "mtime:1 size:2", false, false},
		{"if-match:y", "mtime:1 size:2", true, true},
		{"if-unmodified-since:5", "mtime:1 size:2", false, true},
		{"if-unmodified-since:4", "mtime:1 size:2", false, false},
		{"if-unmodified-since:4", "mtime:1 size:2", true, true},
	} {
		file := stamped{validator: c.now, stamp: kv.Stamp{ETag: `"x"`, Modified: time.Unix(5, 0)}}
		if err := checkVersion(c.was, file, c.mapped); (err == nil) != c.ok || err != nil && !errors.Is(err, kv.ErrChanged) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestConditionOf(t *testing.T) {
	for validator, want := range map[string]string{
		"":                        "",
		"if-match:x":              "if-match:x",
		`etag:"x y" size:2`:       "if-match:x y",
		"mtime:5000000000 size:2": "if-unmodified-since:5",
		"mtime:5000000001 size:2": "if-unmodified-since:6",
		"modified:Thu, 01 Jan 1970 00:00:07 GMT size:2": "if-unmodified-since:7",
		"generation:5 size:2":                           "",
		"anything":                                      "",
	} {
		if got := ConditionOf(validator); got != want {
			t.Errorf("%q becomes %q, want %q", validator, got, want)
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
