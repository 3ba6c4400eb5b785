package extent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

func TestSeparate(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) Extent { return Extent{Path: filepath.Join(dir, name)} }
	for _, name := range []string{"source/inner", "beside", "db/packs"} {
		must.Do(t, os.MkdirAll(at(name).Path, 0o777))
	}
	must.Do(t, os.WriteFile(at("db/"+txn.FormatFile).Path, []byte(txn.FormatWord+" 1\n"), 0o666))
	if err := os.Symlink(at("source").Path, at("link").Path); err != nil {
		t.Skip(err)
	}
	bucket := func(path string) Extent { return Extent{Store: "s3://bucket/", Path: path} }
	for _, c := range []struct {
		what         string
		dest, source Extent
		apart        bool
	}{
		{"beside", at("beside"), at("source"), true},
		{"not there yet", at("new"), at("source"), true},
		{"itself", at("source"), at("source"), false},
		{"inside", at("source/new"), at("source"), false},
		{"around", at("."), at("source"), false},
		{"by a link", at("link"), at("source"), false},
		{"inside by a link", at("link/new"), at("source"), false},
		{"in a database", at("db/packs/new"), at("source"), false},
		{"another store", bucket("a"), at("source"), true},
		{"key beside", bucket("ab"), bucket("a"), true},
		{"key itself", bucket("a"), bucket("a"), false},
		{"key inside", bucket("a/b"), bucket("a"), false},
		{"key around", bucket(""), bucket("a"), false},
	} {
		if err := Separate(c.dest, c.source); (err == nil) != c.apart || err != nil && !errors.Is(err, ErrOverlap) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if err := HoldsDatabase(context.Background(), dir); !errors.Is(err, ErrOverlap) {
		t.Errorf("a directory with a database: %v", err)
	}
	if err := HoldsDatabase(context.Background(), at("source").Path); err != nil {
		t.Errorf("a directory without a database: %v", err)
	}
}
