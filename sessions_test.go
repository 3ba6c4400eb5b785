package zarrdb_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// apiState is what the steps of TestSameAPI share.
type apiState struct {
	db   *engine.DB
	s, f *engine.Session
	a    *zarr.Array
}

func (s *apiState) engine(*testing.T) *engine.DB { return s.db }

// apiStep is one call of the public API. It returns what a program sees of it.
type apiStep struct {
	name string
	do   func(t *testing.T, s *apiState) (any, error)
}

// failsAs is the outcome of a call that fails as it should.
func failsAs(err, want error) (any, error) {
	if !errors.Is(err, want) {
		return nil, fmt.Errorf("%v, want %v", err, want)
	}
	return want, nil
}

// contentOf are the keys below a prefix with their values.
func contentOf(v interface {
	kv.ReadLister
}, prefix string) (any, error) {
	var out []string
	for key, err := range v.List(bg, kv.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		b, err := v.Get(bg, key, kv.All())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, fmt.Sprintf("%s=%x", key, b))
	}
	return out, nil
}

func apiSteps() []apiStep {
	spec := zarr.Spec{Shape: []int64{4000}, Chunks: []int64{1000}, DataType: "int32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)}
	count := func(n int, from int32) []int32 {
		v := make([]int32, n)
		for i := range v {
			v[i] = from + int32(i)
		}
		return v
	}
	none := func(err error) (any, error) { return nil, err }
	set := func(s *engine.Session, key, value string) (any, error) { return none(s.Set(bg, key, []byte(value))) }
	commit := func(s *engine.Session, o engine.CommitOptions) (any, error) {
		c, err := s.Commit(bg, o)
		if err != nil {
			return nil, err
		}
		return fmt.Sprint(c.Message, c.Author, c.Generation, len(c.Parents), c.Properties, c.Root.Empty()), nil
	}
	begin := func(_ *testing.T, s *apiState) (_ any, err error) {
		s.s, err = s.db.Begin(bg, "")
		return nil, err
	}
	head := func(t *testing.T, s *apiState) (*engine.DB, txn.CommitID) {
		id := must.Get(s.engine(t).Resolve(bg, "main"))(t)
		return s.engine(t), id
	}
	return []apiStep{
		{"begin", begin},
		{"group", func(_ *testing.T, s *apiState) (any, error) {
			_, err := s.s.CreateGroup(bg, "g", 0, zarr.Attributes{})
			return nil, err
		}},
		{"array", func(_ *testing.T, s *apiState) (_ any, err error) {
			s.a, err = s.s.CreateArray(bg, "g/a", spec)
			return nil, err
		}},
		{"write", func(_ *testing.T, s *apiState) (any, error) {
			return none(zarr.Write(bg, s.a, zarr.Sel(), count(4000, 1)))
		}},
		{"consolidate", func(_ *testing.T, s *apiState) (any, error) { return none(zarr.Consolidate(bg, s.s, "g", nil)) }},
		{"write a part", func(_ *testing.T, s *apiState) (any, error) {
			return none(zarr.Write(bg, s.a, zarr.Sel(zarr.Slice(990, 1010, 1)), count(20, -7)))
		}},
		{"read", func(_ *testing.T, s *apiState) (any, error) {
			v, _, err := zarr.Read[int32](bg, s.a, zarr.Sel(zarr.Slice(980, 1020, 1)))
			return v, err
		}},
		{"set", func(_ *testing.T, s *apiState) (any, error) { return set(s.s, "k", "1") }},
		{"get", func(_ *testing.T, s *apiState) (any, error) { return kv.Get(bg, s.s, "k") }},
		{"set if", func(_ *testing.T, s *apiState) (any, error) {
			_, err := s.s.SetIf(bg, "k", []byte("2"), engine.Expect{Absent: true})
			return failsAs(err, zarrdb.ErrConflict)
		}},
		{"savepoint", func(_ *testing.T, s *apiState) (any, error) { return none(s.s.Savepoint(bg)) }},
		{"rename", func(_ *testing.T, s *apiState) (any, error) { return none(s.s.Rename(bg, "g/a", "g/b")) }},
		{"copy", func(_ *testing.T, s *apiState) (any, error) { return none(s.s.CopyNode(bg, nil, "g/b", "g/c")) }},
		{"refuse", func(_ *testing.T, s *apiState) (any, error) {
			return failsAs(s.s.Rename(bg, "g/none", "g/d"), zarrdb.ErrNotFound)
		}},
		{"resize", func(_ *testing.T, s *apiState) (_ any, err error) {
			if s.a, err = s.s.Array(bg, "g/c"); err == nil {
				err = s.a.Resize(bg, []int64{1500}, zarr.ResizeOptions{})
			}
			return nil, err
		}},
		{"write again", func(_ *testing.T, s *apiState) (any, error) {
			return none(zarr.Write(bg, s.a, zarr.Sel(), count(1500, 9)))
		}},
		{"bulk", func(_ *testing.T, s *apiState) (any, error) {
			b, err := s.s.Bulk(bg, "bulk", false)
			for i := 0; i < 50 && err == nil; i++ {
				err = b.Set(bg, fmt.Sprint("n", i), []byte(strings.Repeat(fmt.Sprint(i), 1+i*40)))
			}
			if err != nil {
				return nil, err
			}
			return nil, b.Finish(bg)
		}},
		{"reference", func(_ *testing.T, s *apiState) (any, error) {
			return none(s.s.SetVirtual(bg, "ref", tree.Source{URL: "file:///none"}, 3, 4))
		}},
		{"value", func(_ *testing.T, s *apiState) (any, error) { return s.s.Value(bg, "ref") }},
		{"no reference", func(_ *testing.T, s *apiState) (any, error) { return none(s.s.Delete(bg, "ref")) }},
		{"fork", func(_ *testing.T, s *apiState) (_ any, err error) { s.f, err = s.s.Fork(bg); return nil, err }},
		{"write to the fork", func(_ *testing.T, s *apiState) (any, error) { return set(s.f, "fork", "1") }},
		{"write to both", func(_ *testing.T, s *apiState) (any, error) {
			return none(errors.Join(s.f.Set(bg, "both", []byte("f")), s.s.Set(bg, "both", []byte("s"))))
		}},
		{"join refused", func(_ *testing.T, s *apiState) (any, error) {
			return failsAs(s.s.Join(bg, s.f, nil), zarrdb.ErrConflict)
		}},
		{"join", func(_ *testing.T, s *apiState) (any, error) {
			return none(s.s.Join(bg, s.f, []txn.PathChoice{{Choice: txn.Theirs}}))
		}},
		{"remove", func(_ *testing.T, s *apiState) (any, error) { return none(s.s.Remove(bg, "g/b")) }},
		{"replace", func(_ *testing.T, s *apiState) (any, error) {
			_, err := s.s.ReplaceArray(bg, "g/c", spec)
			return nil, err
		}},
		{"changes", func(_ *testing.T, s *apiState) (any, error) {
			var out []string
			for c, err := range s.s.Changes(bg, "") {
				if err != nil {
					return nil, err
				}
				out = append(out, c.Key)
			}
			return out, nil
		}},
		{"content", func(_ *testing.T, s *apiState) (any, error) { return contentOf(s.s, "") }},
		{"dry run", func(_ *testing.T, s *apiState) (any, error) {
			return commit(s.s, engine.CommitOptions{Message: "dry", Author: "me", DryRun: true})
		}},
		{"commit", func(_ *testing.T, s *apiState) (any, error) {
			return commit(s.s, engine.CommitOptions{Message: "all", Author: "me", Properties: map[string]string{"a": "b"}})
		}},
		{"ended", func(_ *testing.T, s *apiState) (any, error) {
			return failsAs(s.s.Set(bg, "k", nil), txn.ErrSessionClosed)
		}},
		{"begin a second one", begin},
		{"set in it", func(_ *testing.T, s *apiState) (any, error) { return set(s.s, "k", "mine") }},
		{"guard", func(_ *testing.T, s *apiState) (any, error) { return none(s.s.Guard(bg, "guarded")) }},
		{"update beside it", func(_ *testing.T, s *apiState) (any, error) {
			_, err := s.db.Update(bg, "", "beside", func(s *engine.Session) error { return s.Set(bg, "k", []byte("theirs")) })
			return nil, err
		}},
		{"conflict", func(_ *testing.T, s *apiState) (any, error) {
			_, err := s.s.Commit(bg, engine.CommitOptions{})
			var conflict *txn.ConflictError
			if !errors.As(err, &conflict) {
				return nil, fmt.Errorf("no conflict: %w", err)
			}
			return fmt.Sprint(conflict.Branch, conflict.Conflicts), nil
		}},
		{"refresh", func(_ *testing.T, s *apiState) (any, error) {
			return none(s.s.Refresh(bg, []txn.PathChoice{{Choice: txn.Theirs}}))
		}},
		{"commit it", func(_ *testing.T, s *apiState) (any, error) {
			return commit(s.s, engine.CommitOptions{Message: "second", Author: "me"})
		}},
		{"begin a third one", begin},
		{"set in the third", func(_ *testing.T, s *apiState) (any, error) { return set(s.s, "k", "third") }},
		{"update beside the third", func(_ *testing.T, s *apiState) (any, error) {
			_, err := s.db.Update(bg, "", "beside", func(s *engine.Session) error { return s.Set(bg, "k", []byte("fourth")) })
			return nil, err
		}},
		{"decide", func(_ *testing.T, s *apiState) (any, error) {
			decided := ""
			o := engine.CommitOptions{Message: "third", Author: "me", Choices: []txn.PathChoice{{Choice: txn.Ours}}}
			o.Decided = func(c txn.Conflict, choice txn.Choice) { decided = fmt.Sprint(c, choice) }
			out, err := commit(s.s, o)
			return fmt.Sprint(out, decided), err
		}},
		{"begin what is aborted", begin},
		{"abort", func(_ *testing.T, s *apiState) (any, error) { return none(s.s.Abort()) }},
		{"branch", func(_ *testing.T, s *apiState) (any, error) { return none(s.db.CreateBranch(bg, "x", "main~1")) }},
		{"tag", func(_ *testing.T, s *apiState) (any, error) { return none(s.db.CreateTag(bg, "v1", "main")) }},
		{"update a branch", func(_ *testing.T, s *apiState) (any, error) {
			_, err := s.db.Update(bg, "x", "on x", func(s *engine.Session) error { return s.Set(bg, "x", []byte("x")) })
			return nil, err
		}},
		{"merge", func(_ *testing.T, s *apiState) (any, error) {
			c, err := s.db.Merge(bg, "", "x", engine.CommitOptions{Author: "me"})
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(c.Message, c.Author, c.Generation, len(c.Parents)), nil
		}},
		{"revert", func(t *testing.T, s *apiState) (any, error) {
			in, id := head(t, s)
			_, err := in.Versions().Revert(bg, "", id, 1, engine.CommitOptions{Message: "undone"})
			return nil, err
		}},
		{"undo", func(t *testing.T, s *apiState) (any, error) {
			_, err := s.engine(t).UndoBranch(bg, "")
			return nil, err
		}},
		{"reset", func(_ *testing.T, s *apiState) (any, error) { _, err := s.db.Reset(bg, "x", "v1"); return nil, err }},
		{"no tag", func(_ *testing.T, s *apiState) (any, error) { return none(s.db.DeleteTag(bg, "v1")) }},
		{"retry", func(_ *testing.T, s *apiState) (any, error) { return none(increment(s.db)) }},
		{"sessions", func(t *testing.T, s *apiState) (any, error) {
			list, err := s.engine(t).Sessions(bg)
			return len(list), err
		}},
	}
}

// Programs write, and read what they wrote, the same in the process that has the database
// open, beside it, and when that process is killed before any of their calls. Every version
// has the same content at the end.
func TestSameAPI(t *testing.T) {
	steps := apiSteps()
	run := func(kill int, there bool) (out []string) {
		dir := counterDB(t)
		var c *exec.Cmd
		end := func() {}
		if there {
			c, end = holder(t, dir)
		}
		s := &apiState{db: open(t, dir, nil)}
		for i, step := range steps {
			if i == kill {
				must.Do(t, c.Process.Kill())
				end()
			}
			v, err := step.do(t, s)
			if errors.Is(err, zarrdb.ErrGone) && !errors.Is(err, txn.ErrLost) { // some requests are not repeated
				v, err = step.do(t, s)
			}
			if err != nil {
				t.Fatalf("killed before %q: %s: %v", cmp.Or(name(steps, kill), "nothing"), step.name, err)
			}
			out = append(out, fmt.Sprintf("%s: %v", step.name, v))
		}
		out = append(out, versions(t, s.db)...)
		if err := s.db.Close(); err != nil {
			t.Error(err)
		}
		end()
		checked(t, dir)
		return out
	}
	want := run(-1, false)
	every := 1
	if testing.Short() {
		every = 7
	}
	for kill := -1; kill < len(steps); kill += every {
		if got := run(kill, true); !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("killed before %q:\n%.2000s\nwant\n%.2000s", name(steps, kill), got[i], want[i])
					break
				}
			}
		}
	}
}

func name(steps []apiStep, i int) string {
	if i < 0 {
		return ""
	}
	return steps[i].name
}

// versions are the branches and tags, and the content of every version of main.
func versions(t *testing.T, db *engine.DB) (out []string) {
	t.Helper()
	branches, tags, err := db.Refs(bg)
	must.Do(t, err)
	for _, r := range slices.Concat(branches, tags) {
		out = append(out, r.Name)
	}
	for c, err := range db.Log(bg, "main") {
		must.Do(t, err)
		content := must.Get(contentOf(at(t, db, c.ID.String()), ""))(t)
		out = append(out, fmt.Sprint(c.Message, content))
	}
	return out
}

// checked checks a database with all payloads.
func checked(t *testing.T, dir string) {
	t.Helper()
	db := must.Get(engine.Open(context.Background(), dir, nil))(t)
	defer db.Close()
	r, err := db.Check(bg, txn.CheckOptions{Payloads: true})
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("%v, %v", r.Problems, err)
	}
}
