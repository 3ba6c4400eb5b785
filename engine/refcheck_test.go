package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// problems checks references and returns what is wrong as "KEY error".
func problems(t testing.TB, s *Source, o RefCheckOptions) (found []string, r *RefCheckReport) {
	t.Helper()
	o.Problem = func(p RefProblem) error {
		what := "?"
		switch {
		case errors.Is(p.Err, ErrForbidden):
			what = "forbidden"
		case errors.Is(p.Err, ErrUnreachable):
			what = "unreachable"
		case errors.Is(p.Err, kv.ErrChanged):
			what = "changed"
		}
		found = append(found, p.Key+" "+what)
		return nil
	}
	r, err := s.CheckReferences(bg, o)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found, r
}

func TestCheckReferences(t *testing.T) {
	chunks := `,"t/0":["a",0,3],"t/1":["a",2,2],"t/2":["none"],"t/3":["/etc/passwd"],"t/4":"inline","t/5":["b"],"t/6":["b",3,0]`
	base := folder(t, map[string]string{"a": "abc", "b": "xyz", "refs.json": setOf(7, chunks)})
	want := []string{"t/1 unreachable", "t/2 unreachable", "t/3 forbidden"}
	set := openFollow(t, base+"/refs.json", Follow{})
	if found, r := problems(t, set, RefCheckOptions{}); !slices.Equal(found, want) || r.Done != 6 || r.Problems != 3 {
		t.Errorf("set: %q, %+v", found, r)
	}
	if found, r := problems(t, set, RefCheckOptions{From: 2}); !slices.Equal(found, want[1:]) || r.Done != 6 {
		t.Errorf("set, from the third on: %q, %+v", found, r)
	}

	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	db := openDB(t, linkOptions(t, ""))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{To: "n"})
	closeChecked(t, db)
	check := func() ([]string, *RefCheckReport) {
		src, err := OpenDatabaseSource(bg, db.Dir(), "", "", "n", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		return problems(t, src, RefCheckOptions{})
	}
	for i := range want {
		want[i] = "n/" + want[i]
	}
	if found, r := check(); !slices.Equal(found, want) || r.Done != 6 {
		t.Errorf("database: %q, %+v", found, r)
	}
	if err := os.WriteFile(base+"/b", []byte("longer"), 0o666); err != nil {
		t.Fatal(err)
	}
	want = append(want, "n/t/5 changed", "n/t/6 changed")
	if found, _ := check(); !slices.Equal(found, want) {
		t.Errorf("after a change: %q", found)
	}
	stop := errors.New("stop")
	_, err := set.CheckReferences(bg, RefCheckOptions{Problem: func(RefProblem) error { return stop }})
	if err != stop {
		t.Errorf("stopped by the caller: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := set.CheckReferences(ctx, RefCheckOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := openFollow(t, memoryURL(t, map[string]string{".zgroup": `{"zarr_format":2}`}), Follow{}).CheckReferences(bg, RefCheckOptions{}); !errors.Is(err, ErrFormat) {
		t.Errorf("of a store: %v", err)
	}
}

// What was localised reads the same and needs the files no more.
func TestLocalize(t *testing.T) {
	base := folder(t, map[string]string{"a": "abc" + strings.Repeat("x", 2000), "refs.json": setOf(3, `,"t/0":["a",0,1],"t/2":["a",2,1],"big":["a"]`)})
	db := openDB(t, linkOptions(t, t.TempDir()))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	db = reopened(t, db)
	local := func(path string) (keys, bytes int64) {
		t.Helper()
		s, err := db.Begin(bg, "")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Abort()
		if keys, bytes, err = db.Localize(bg, s, path, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(bg, txn.CommitOptions{}); err != nil {
			t.Fatal(err)
		}
		return keys, bytes
	}
	if k, b := local("t"); k != 2 || b != 2 {
		t.Errorf("%d keys, %d bytes", k, b)
	}
	if k, b := local(""); k != 1 || b != 2003 {
		t.Errorf("%d keys, %d bytes", k, b)
	}
	if k, _ := local(""); k != 0 {
		t.Errorf("again: %d keys", k)
	}
	if err := os.Remove(base + "/a"); err != nil {
		t.Fatal(err)
	}
	if b, err := values(t, at(t, db, "")); err != nil || string(b) != "a\xffc" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := values(t, at(t, db, "main~2")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the version before: %v", err)
	}
	s, err := db.Begin(bg, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abort()
	if _, _, err := db.Localize(bg, s, "nowhere", nil); err == nil {
		t.Error("nothing was localised")
	}
}
