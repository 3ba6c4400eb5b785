package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// hidden is in every secret of these tests. It is in lower case, as hosts are.
const hidden = "hidden42"

// tells makes sure that an error is what it should be and names a file, without
// what gives access to it.
func tells(t *testing.T, what string, err error, file string, is ...error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), hidden) || !strings.Contains(err.Error(), file) {
		t.Errorf("%s: %v", what, err)
	}
	for _, target := range is {
		if !errors.Is(err, target) {
			t.Errorf("%s: %v is not %v", what, err, target)
		}
	}
}

// secretServer has a short file below /top/, refuses another, and says nothing
// when it is asked for a third.
func secretServer(t *testing.T) (web, withUser string) {
	o := newOrigin(t, map[string][]byte{"/top/short": numbered(10)})
	o.before = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		switch r.URL.Path {
		case "/top/denied":
			w.WriteHeader(http.StatusForbidden)
		case "/top/cut":
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				err = c.Close()
			}
			if err != nil {
				t.Error(err)
			}
		default:
			return false
		}
		return true
	}
	return o.URL + "/top/", strings.Replace(o.URL, "://", "://joe:"+hidden+"@", 1) + "/top/"
}

// secretRef is a reference of which the URL gives access to what it names.
type secretRef struct {
	file, url string
	is        error // nil for a failed request
}

func secretRefs(web, withUser string) []secretRef {
	sig := "?X-Amz-Signature=" + hidden
	return []secretRef{
		{"gone", web + "gone" + sig, ErrUnreachable},
		{"denied", web + "denied" + sig, nil},
		{"short", web + "short" + sig, ErrUnreachable},
		{"cut", web + "cut" + sig, nil},
		{"gone", withUser + "gone", ErrUnreachable},
		{"denied", withUser + "denied", nil},
		{"far", "https://joe:" + hidden + "@elsewhere.invalid/far" + sig, ErrForbidden},
		{"chain", "zip://in::https://joe:" + hidden + "@elsewhere.invalid/chain" + sig, ErrForbidden},
	}
}

// setOfRefs is a set whose array t has a chunk of 20 bytes for each of them.
func setOfRefs(list []secretRef) string {
	var chunks strings.Builder
	for i, c := range list {
		fmt.Fprintf(&chunks, `,"t/%d":[%q,5,20]`, i, c.url)
	}
	return setOf(len(list), chunks.String())
}

func openSet(t *testing.T, set string, o *SourceOptions) *Source {
	t.Helper()
	src := must.Get(OpenSource(bg, folder(t, map[string]string{"refs.json": set})+"/refs.json", o))(t)
	t.Cleanup(func() { src.Close() })
	return src
}

// TestSecretsOfReferences reads, checks, copies and exports references with
// secrets. Errors have none, data has all.
func TestSecretsOfReferences(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	web, withUser := secretServer(t)
	list := secretRefs(web, withUser)
	opts := linkOptions(t, t.TempDir())
	opts.Adapters, opts.Follow = hasty(remote.Options{}), Follow{Allow: []string{web, withUser}}
	src := openSet(t, setOfRefs(list), &SourceOptions{Adapters: opts.Adapters, Follow: opts.Follow})
	db := openDB(t, opts)
	must.Get(db.Import(bg, src, ImportOptions{Link: true, Validate: ValidateNone}))(t)
	set, err := src.dataset(bg)
	must.Do(t, err)
	snap := at(t, db, "")

	check := func(what string, c secretRef, err error, file string) {
		t.Helper()
		var failed *remote.Error
		if c.is != nil {
			tells(t, what, err, file, c.is)
		} else if tells(t, what, err, file); !errors.As(err, &failed) {
			t.Errorf("%s: %v is not a failed request", what, err)
		}
	}
	for i, c := range list {
		key := fmt.Sprintf("t/%d", i)
		_, err := kv.Get(bg, set.View, key)
		check("set: "+c.url, c, err, c.file)
		_, err = kv.Get(bg, snap, key)
		check("linked: "+c.url, c, err, c.file)
	}
	s := must.Get(db.Begin(bg, ""))(t)
	_, _, err = db.Localize(bg, s, "t", LocalizeOptions{})
	tells(t, "localize", errors.Join(err, s.Abort()), "")

	closeChecked(t, db)
	stored := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "", &SourceOptions{Adapters: opts.Adapters, Follow: opts.Follow}))(t)
	for what, src := range map[string]*Source{"set": src, "linked": stored} {
		n := 0
		_, err := src.CheckReferences(bg, RefCheckOptions{Problem: func(p RefProblem) error {
			c := list[p.Key[len("t/")]-'0']
			if n++; p.URL != c.url {
				t.Errorf("%s: URL %s, want %s", what, p.URL, c.url)
			}
			check("check of "+what+": "+c.url, c, p.Err, "")
			return nil
		}})
		if err != nil || n != len(list) {
			t.Errorf("check of %s: %d problems, %v", what, n, err)
		}
	}
	must.Do(t, stored.Close())
	_, _, err = exportedSet(t, db, "", ExportReferencesOptions{InlineThreshold: 100})
	tells(t, "export of values", err, "")
	entries, _, err := exportedSet(t, db, "", ExportReferencesOptions{})
	for i, c := range list {
		if got := entries[fmt.Sprintf("t/%d", i)]; err != nil || got != c.url+" 5 20" {
			t.Errorf("exported as %s, %v", got, err)
		}
	}
}

// TestSecretsOfLinks fails to link references with secrets.
func TestSecretsOfLinks(t *testing.T) {
	web, withUser := secretServer(t)
	o := &SourceOptions{Adapters: hasty(remote.Options{}), Follow: Follow{Allow: []string{web, withUser}}}
	opts := memOptions()
	opts.Adapters = o.Adapters
	db := openDB(t, opts)
	sig := "?sig=" + hidden
	for _, c := range []struct {
		what, set, file string
		validate        Validate
		is              []error
	}{
		{"a file that is missing", setOf(1, fmt.Sprintf(`,"t/0":[%q]`, web+"gone"+sig)), "/top/gone", ValidateAll, []error{ErrUnreachable, ErrNotHere}},
		{"an unknown scheme", setOf(1, `,"t/0":["abfs://joe:`+hidden+`@c/odd`+sig+`"]`), "abfs://c/odd?…", ValidateLocal, []error{ErrFormat, ErrNotHere}},
		{"a document that is missing", fmt.Sprintf(`{"t/.zarray":[%q]}`, withUser+"gone"), "/top/gone", ValidateLocal, []error{ErrUnreachable}},
		{"a document that is short", fmt.Sprintf(`{"t/.zarray":[%q,5,20]}`, web+"short"+sig), "/top/short?…", ValidateLocal, []error{ErrUnreachable}},
		{"a relative URL that leads out", setOf(1, `,"t/0":["../above`+sig+`"]`), "../above?…", ValidateNone, []error{ErrForbidden}},
	} {
		_, err := db.Import(bg, openSet(t, c.set, o), ImportOptions{Link: true, Validate: c.validate})
		tells(t, c.what, err, c.file, c.is...)
	}

	bad := "https://joe:" + hidden + "@h/a" + sig
	_, err := source.PlainURL(bad + "|zip:b")
	tells(t, "a prefix that is a pipeline", err, "https://h/a?…|zip:b", ErrFormat)
	err = (Follow{Map: []Mapping{{From: "https://joe:" + hidden + "@h?x=" + hidden, To: "s3://b"}}}).Check()
	tells(t, "a mapping of no folder", err, "https://h?…")
}

// TestSecretsOfPieces appends sources with secrets in their names.
func TestSecretsOfPieces(t *testing.T) {
	url := func(file string) string { return "https://joe:" + hidden + "@h/" + file + "?token=" + hidden }
	boom := errors.New("boom")
	piece := func(file, scale string) Piece {
		return Piece{url(file), func(ctx context.Context) (*Source, error) {
			if scale == "" {
				return nil, boom
			}
			return OpenSource(ctx, folder(t, map[string]string{"refs.json": setOf(1,
				`,"t/0":"a","t/.zattrs":"{\"_ARRAY_DIMENSIONS\":[\"x\"],\"scale_factor\":`+scale+`}"`)})+"/refs.json", nil)
		}}
	}
	plan := func(dim string, pieces ...Piece) error {
		_, err := PlanAppend(bg, pieces, AppendOptions{Dim: dim, Link: true})
		return err
	}
	tells(t, "a piece that does not open", plan("x", piece("a.json", ""), piece("b.json", "0")), "append https://h/a.json?…: boom", boom)
	tells(t, "no such dimension", plan("y", piece("a.json", "0")), "https://h/a.json?…", ErrMisfit)
	err := plan("x", piece("a.json", "0"), piece("b.json", "1"))
	tells(t, "a piece that does not fit", err, "https://h/b.json?…", ErrMisfit)
	tells(t, "a piece that does not fit", err, "https://h/a.json?…")
}
