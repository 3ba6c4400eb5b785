package engine

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

// A missing file and one of no known format are different errors.
func TestNothingThere(t *testing.T) {
	o := newOrigin(t, map[string][]byte{"/d/zarr.txt": []byte("x")})
	in := memoryURL(t, map[string]string{"d/readme": "x"})
	for url, missing := range map[string]bool{
		o.URL + "/none.json": true, o.URL + "/none.json/": false, o.URL + "/d/zarr.txt": false,
		in + "none": true, in + "d": false, in + "d/": false, in + "d/readme": false,
	} {
		src := openURL(t, url)
		_, err := src.Node(bg)
		if !errors.Is(err, ErrFormat) || errors.Is(err, kv.ErrNotFound) != missing {
			t.Errorf("%s: %v", url, err)
		}
		if err := src.IsReferenceSet(bg); !errors.Is(err, ErrFormat) || errors.Is(err, kv.ErrNotFound) != missing {
			t.Errorf("%s, as a reference set: %v", url, err)
		}
	}
}
