package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// The list of files that references name stays within its bound, and loses no reference.
func TestReferredBounded(t *testing.T) {
	c := referredCounts{known: map[string]*Referred{}, most: 20}
	add := func(url string) {
		must.Do(t, c.add(&reference{src: tree.Source{URL: url}, length: 2}))
		if len(c.known) > c.most {
			t.Fatalf("%d entries", len(c.known))
		}
	}
	for range 2 {
		for i := range 1000 {
			add(fmt.Sprintf("s3://b/y%d/m%d/f%d.nc", i%2, i%10, i))
			add("s3://b/one.nc")
		}
	}
	var n, bytes int64
	for _, r := range c.known {
		n, bytes = n+r.References, bytes+r.Bytes
	}
	if n != 4000 || bytes != 8000 || c.known["s3://b/one.nc"].References != 2000 || c.known["s3://b/y0/m0/"].References != 200 {
		t.Errorf("%d references of %d bytes, %v", n, bytes, c.known)
	}
	// However many hosts and schemes there are.
	c = referredCounts{known: map[string]*Referred{}, most: 4}
	for i := range 10 {
		add(fmt.Sprintf("https://h%d/f", i))
		add(fmt.Sprintf("s3://h%d/f", i))
	}
	for i := range 10 {
		if err := c.add(&reference{src: tree.Source{URL: fmt.Sprintf("x%d", i)}}); err != nil {
			return
		}
	}
	t.Errorf("more than the bound: %d", len(c.known))
}

// Versions of databases and sets are listed alike.
func TestReferred(t *testing.T) {
	base := folder(t, map[string]string{"x": "abcdefgh", "set.json": `{".zgroup":{"zarr_format":2},"t/.zarray":{"zarr_format":2,"shape":[16],"chunks":[4],` +
		`"dtype":"|u1","compressor":null,"filters":null,"fill_value":45,"order":"C"},"t/0":["x",0,4],"t/1":["x",4,4],"t/2":["s3://b/y/z"],"t/3":"abcd"}`})
	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, base+"/set.json", Follow{}, ImportOptions{})
	for _, src := range []*Source{sourceOf(t, db), openURL(t, base+"/set.json")} {
		got, err := src.Referred(bg, nil)
		want := []Referred{
			{URL: "file://" + base + "/x", Prefix: "file://" + base + "/", References: 2, Bytes: 8},
			{URL: "s3://b/y/z", Prefix: "s3://b/", References: 1, Whole: 1},
		}
		if err != nil || !slices.Equal(got, want) && !strings.HasPrefix(base, "C:") {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
