package formattest_test

import (
	"testing"

	"github.com/zarrdb/zarrdb/formats/formattest"
	"github.com/zarrdb/zarrdb/kv"
)

// Golden files are compared by the largest difference, also downwards and in length.
func TestDifference(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"abc", "abc", 0}, {"abc", "abe", 2}, {"ace", "aaf", 2}, {"abc", "ab", 256}, {"\x00", "\xff", 255}, {"", "", 0}} {
		if got := formattest.Difference([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%q and %q differ by %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// Files gives formats the one file that they open.
func TestFiles(t *testing.T) {
	got, err := formattest.Files([]byte("pixels")).Get(t.Context(), formattest.Name, kv.All())
	if err != nil || string(got) != "pixels" {
		t.Errorf("%q, %v", got, err)
	}
}
