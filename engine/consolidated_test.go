package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// consolidatedStore is a store of a format with copies of metadata at the root
// and in the group g.
func consolidatedStore(t *testing.T, db *DB, v zarr.Version) {
	t.Helper()
	spec := line(6, 2)
	spec.Version = v
	commit(t, db, "", "store", func(s *Session) error {
		if _, err := s.CreateGroup(bg, "", v, zarr.Attributes{}); err != nil {
			return err
		}
		for _, path := range []string{"x", "g/y", "g/h/z"} {
			if err := create(s, path, spec); err != nil {
				return err
			}
		}
		for _, path := range []string{"g", ""} {
			if err := zarr.Consolidate(bg, s, path, nil); err != nil {
				return err
			}
		}
		return nil
	})
	wantCopies(t, at(t, db, ""), "", "g")
}

// wantCopies makes sure that exactly these groups carry consolidated metadata,
// and that it says what the documents say.
func wantCopies(t *testing.T, s *Snapshot, want ...string) {
	t.Helper()
	var have []string
	for n, err := range s.Walk(bg, "") {
		must.Do(t, err)
		_, isArray := n.Array()
		copied := must.Get(kv.Exists(bg, s, names.Dir(n.Path())+names.V2Metadata))(t)
		if !isArray && (copied || n.Meta().CarriesNodes()) {
			have = append(have, n.Path())
			sameNodes(t, s, n.Path())
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("consolidated metadata in %q, want %q", have, want)
	}
}

// sameNodes compares the nodes below a group with their copies.
func sameNodes(t *testing.T, s *Snapshot, group string) {
	t.Helper()
	var lists [2][]string
	for i, o := range []*zarr.OpenOptions{{}, {Consolidated: true}} {
		for n, err := range zarr.Walk(bg, s, group, o) {
			must.Do(t, err)
			docs := must.Get(n.Meta().Print())(t)
			for name, doc := range docs {
				o := must.Get(policy.ParseObject(doc))(t)
				o.Remove(policy.InlineCopy) // that of an inner group is compared by itself
				lists[i] = append(lists[i], names.Dir(n.Path())+name+" "+string(canonical(o)))
			}
		}
		slices.Sort(lists[i])
	}
	if !slices.Equal(lists[0], lists[1]) {
		t.Errorf("/%s: the copies say\n%s\nthe documents\n%s", group, strings.Join(lists[1], "\n"), strings.Join(lists[0], "\n"))
	}
}

func TestConsolidatedMetadataFollowsChanges(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		t.Run(v.String(), func(t *testing.T) {
			db := openDB(t, nil)
			consolidatedStore(t, db, v)
			old := at(t, db, "")
			spec := line(6, 2)
			spec.Version = v
			for _, step := range []struct {
				what   string
				do     func(*Session) error
				copies []string
			}{
				{"attributes of an array", func(s *Session) error { return setAttr(s, "g/y", "units", "K") }, []string{"", "g"}},
				{"attributes of a group", func(s *Session) error { return setAttr(s, "g", "n", 1) }, []string{"", "g"}},
				{"attributes of the root", func(s *Session) error { return setAttr(s, "", "n", 1) }, []string{"", "g"}},
				{"a chunk", func(s *Session) error { return put(s, "g/y", 1, 7) }, []string{"", "g"}},
				{"a shape", func(s *Session) error { return array(t, s, "x").Resize(bg, []int64{3}, zarr.ResizeOptions{}) }, []string{"", "g"}},
				{"a new array", func(s *Session) error { return create(s, "g/new/w", spec) }, []string{"", "g"}},
				{"an array in place of a group", func(s *Session) error { _, err := s.ReplaceArray(bg, "g/h", spec); return err }, []string{"", "g"}},
				{"a rename", func(s *Session) error { return s.Rename(bg, "g/y", "g/y2") }, []string{"", "g"}},
				{"a renamed group", func(s *Session) error { return s.Rename(bg, "g", "g2") }, []string{"", "g2"}},
				{"a copy from before", func(s *Session) error { return s.CopyNode(bg, old, "g", "g") }, []string{"", "g", "g2"}},
				{"a removal", func(s *Session) error { return s.Remove(bg, "g2/y2") }, []string{"", "g", "g2"}},
				{"a deleted handle", func(s *Session) error { return array(t, s, "g/h/z").Delete(bg) }, []string{"", "g", "g2"}},
				{"a removed group", func(s *Session) error { return s.Remove(bg, "g2") }, []string{"", "g"}},
				{"a move of keys", func(s *Session) error { return s.Move(bg, "g/y", "g/y3") }, []string{"", "g"}},
				{"a move after a change", func(s *Session) error {
					return errors.Join(setAttr(s, "g/y3", "n", 2), s.Move(bg, "g", "g5"))
				}, []string{"", "g5"}},
				{"a copy after a change", func(s *Session) error {
					return errors.Join(setAttr(s, "g5/y3", "n", 3), s.Copy(bg, nil, "g5", "g"))
				}, []string{"", "g", "g5"}},
				{"a copy of keys from before", func(s *Session) error { return s.Copy(bg, old.at, "x", "g/x") }, []string{"", "g", "g5"}},
				{"an empty bulk write", func(s *Session) error {
					b, err := s.Bulk(bg, "g/x", false)
					if err != nil {
						return err
					}
					return b.Finish(bg)
				}, []string{"", "g", "g5"}},
				{"a prefix", func(s *Session) error { return s.DeletePrefix(bg, "g5/") }, []string{"", "g"}},
			} {
				commit(t, db, "", step.what, step.do)
				wantCopies(t, at(t, db, ""), step.copies...)
				if t.Failed() {
					t.Fatal(step.what)
				}
			}
		})
	}
}

// Between a change and the commit there is no copy rather than a wrong one.
func TestConsolidatedMetadataIsDroppedAtOnce(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		db := openDB(t, nil)
		consolidatedStore(t, db, v)
		s := must.Get(db.Begin(bg, ""))(t)
		defer s.Abort()
		copies := func() bool {
			n := must.Get(s.Node(bg, ""))(t)
			has := must.Get(kv.Exists(bg, s, names.V2Metadata))(t)
			return has || n.Meta().CarriesNodes()
		}
		if err := put(s, "x", 0, 9); err != nil || !copies() {
			t.Errorf("v%v: after a chunk: %v, %v", v, copies(), err)
		}
		if err := setAttr(s, "x", "a", 1); err != nil || copies() {
			t.Errorf("v%v: after a change: %v, %v", v, copies(), err)
		}
		if err := s.Savepoint(bg); err != nil || !copies() {
			t.Errorf("v%v: after the savepoint: %v, %v", v, copies(), err)
		}
	}
}

// Where a node cannot be opened there can be no copy, and the commit goes on.
func TestConsolidatedMetadataNextToSomethingUnknown(t *testing.T) {
	db := openDB(t, nil)
	consolidatedStore(t, db, zarr.V3)
	commit(t, db, "", "unknown grid", func(s *Session) error {
		return s.Set(bg, "g/odd/zarr.json", []byte(arrayV3(`"name":"regular"`, `"name":"unheard-of"`)))
	})
	commit(t, db, "", "rename", func(s *Session) error { return s.Rename(bg, "g", "k") })
	n, err := at(t, db, "").Group(bg, "")
	if err != nil || n.Meta().CarriesNodes() {
		t.Errorf("a copy of what cannot be opened: %v", err)
	}
}

func TestConsolidatedMetadataIsMerged(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		t.Run(v.String(), func(t *testing.T) {
			db := openDB(t, nil)
			consolidatedStore(t, db, v)
			spec := line(6, 2)
			spec.Version = v
			sides := func(ours, theirs func(*Session) error) error {
				s, err := db.Begin(bg, "")
				must.Do(t, err)
				defer s.Abort()
				must.Do(t, theirs(s))
				commit(t, db, "", "ours", ours)
				_, err = s.Commit(bg, txn.CommitOptions{Message: "theirs"})
				return err
			}
			err := sides(
				func(s *Session) error { return errors.Join(setAttr(s, "x", "a", 1), create(s, "g/n1", spec)) },
				func(s *Session) error { return errors.Join(setAttr(s, "x", "b", 2), create(s, "g/n2", spec)) },
			)
			must.Do(t, err)
			now := at(t, db, "")
			wantCopies(t, now, "", "g")
			if got := attrsOf(t, now, "x"); got != `{"a":1,"b":2}` {
				t.Errorf("attributes %s", got)
			}
			for _, path := range []string{"g/n1", "g/n2"} {
				wantInts(t, now, path, 0, 1, 2, 3, 4, 5)
			}

			// The first session renames the array that the second one changes.
			must.Do(t, sides(
				func(s *Session) error { return s.Rename(bg, "g/y", "moved") },
				func(s *Session) error { return setAttr(s, "g/y", "c", 3) },
			))
			now = at(t, db, "")
			if got := attrsOf(t, now, "moved"); got != `{"c":3}` {
				t.Errorf("attributes %s", got)
			}
			for n, err := range now.Walk(bg, "") { // whichever copies are left are true
				must.Do(t, err)
				if _, ok := n.Array(); !ok {
					sameNodes(t, now, n.Path())
				}
			}

			// A conflict is one about the array, not about its copies.
			err = sides(
				func(s *Session) error { return setAttr(s, "x", "a", 10) },
				func(s *Session) error { return setAttr(s, "x", "a", 20) },
			)
			var conflict *txn.ConflictError
			if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 {
				t.Fatalf("error %v", err)
			}
			want := map[zarr.Version]string{zarr.V2: "x/.zattrs a", zarr.V3: "x/zarr.json attributes.a"}[v]
			if c := conflict.Conflicts[0]; fmt.Sprint(c.Path, " ", c.Field) != want {
				t.Errorf("conflict %+v", c)
			}
		})
	}
}

// Consolidated metadata that one side of a merge made does not hide what the other
// side did below.
func TestConsolidatedMetadataOfOneSideIsNotStale(t *testing.T) {
	edits := map[string]func(*Session, zarr.Spec) error{
		"new array":     func(s *Session, spec zarr.Spec) error { return create(s, "g/new", spec) },
		"attribute":     func(s *Session, _ zarr.Spec) error { return setAttr(s, "g/y", "a", 1) },
		"removed array": func(s *Session, _ zarr.Spec) error { return s.Remove(bg, "g/y") },
		"renamed array": func(s *Session, _ zarr.Spec) error { return s.Rename(bg, "x", "g/x") },
		"both": func(s *Session, spec zarr.Spec) error {
			return errors.Join(s.Remove(bg, "g/y"), zarr.Consolidate(bg, s, "", nil))
		},
		"root attribute": func(s *Session, _ zarr.Spec) error { return setAttr(s, "", "a", 1) },
	}
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		for what, edit := range edits {
			for _, consolidatedFirst := range []bool{true, false} {
				t.Run(fmt.Sprint(v, " ", what, " ", consolidatedFirst), func(t *testing.T) {
					db := openDB(t, nil)
					spec := line(6, 2)
					spec.Version = v
					commit(t, db, "", "store", func(s *Session) error {
						return errors.Join(create(s, "x", spec), create(s, "g/y", spec))
					})
					consolidate := func(s *Session) error {
						a, err := s.Array(bg, "x") // so that a rename is followed
						if err != nil {
							return err
						}
						return errors.Join(zarr.Write(bg, a, zarr.Sel(zarr.At(0)), []int32{7}), zarr.Consolidate(bg, s, "", nil))
					}
					first, second := consolidate, func(s *Session) error { return edit(s, spec) }
					if !consolidatedFirst {
						first, second = second, first
					}
					s := must.Get(db.Begin(bg, ""))(t)
					defer s.Abort()
					commit(t, db, "", "first", first)
					must.Do(t, second(s))
					must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
					want := []string{}
					if v == zarr.V3 && what == "root attribute" {
						want = append(want, "") // the document of the group itself is not copied
					}
					wantCopies(t, at(t, db, ""), want...)
				})
			}
		}
	}
}

// Two sides that both make the root group merge, whichever of them consolidates.
func TestConsolidatedMetadataOfAGroupThatBothMade(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		side := func(path string, consolidate bool) func(*Session) error {
			return func(s *Session) (err error) {
				if path == "" {
					_, err = s.CreateGroup(bg, "", v, zarr.Attributes{})
				} else {
					spec := line(6, 2)
					spec.Version = v
					err = create(s, path, spec)
				}
				if err == nil && consolidate {
					err = zarr.Consolidate(bg, s, "", nil)
				}
				return err
			}
		}
		for i, c := range []struct {
			sides [2]func(*Session) error
			want  []string
		}{
			{[2]func(*Session) error{side("a", true), side("b", false)}, []string{}},
			{[2]func(*Session) error{side("a", false), side("b", true)}, []string{}},
			{[2]func(*Session) error{side("a", true), side("b", true)}, []string{}},
			{[2]func(*Session) error{side("a", true), side("", false)}, []string{""}},
			{[2]func(*Session) error{side("", false), side("a", true)}, []string{""}},
		} {
			for _, sessions := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v %d sessions %v", v, i, sessions), func(t *testing.T) {
					db := openDB(t, nil)
					s, err := db.Begin(bg, "")
					must.Do(t, err)
					defer s.Abort()
					for _, name := range []string{"side", "third"} {
						must.Do(t, db.store.CreateBranch(bg, name, head(t, db, "")))
					}
					commit(t, db, "", "first", c.sides[0])
					if sessions {
						must.Do(t, c.sides[1](s))
						_, err = s.Commit(bg, txn.CommitOptions{})
					} else {
						_, err = db.store.Merge(bg, "", commit(t, db, "side", "second", c.sides[1]), txn.CommitOptions{})
					}
					must.Do(t, err)
					wantCopies(t, at(t, db, ""), c.want...)
					// A group whose copies were taken out is still the same.
					must.Get(db.store.Merge(bg, "", commit(t, db, "third", "third", side("c", false)), txn.CommitOptions{}))(t)
					wantCopies(t, at(t, db, ""))
				})
			}
		}
	}
}

// Handles that were opened before consolidated metadata was dropped change what is
// stored now: the copies are made again, and nothing that another handle did is lost.
func TestConsolidatedBesideOldHandles(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		t.Run("v"+v.String(), func(t *testing.T) {
			db := openDB(t, nil)
			consolidatedStore(t, db, v)
			commit(t, db, "", "change", func(s *Session) error {
				root, err := s.Group(bg, "")
				if err != nil {
					return err
				}
				a, err := s.Array(bg, "x")
				if err != nil {
					return err
				}
				b, err := s.Array(bg, "x")
				if err != nil {
					return err
				}
				for _, change := range []func(zarr.Attributes) error{
					func(n zarr.Attributes) error { return a.SetAttributes(bg, n) },
					func(n zarr.Attributes) error { return root.SetAttributes(bg, n) },
				} {
					var n zarr.Attributes
					if err := errors.Join(n.Set("k", 1), change(n)); err != nil {
						return err
					}
				}
				return b.Resize(bg, []int64{9}, zarr.ResizeOptions{})
			})
			snap := at(t, db, "")
			wantCopies(t, snap, "", "g")
			root := must.Get(snap.Group(bg, ""))(t)
			a := must.Get(snap.Array(bg, "x"))(t)
			if root.Attributes().Len() != 1 || a.Meta().Attributes.Len() != 1 || a.Shape()[0] != 9 {
				t.Errorf("%v, %v, %v", root.Attributes().Keys(), a.Meta().Attributes.Keys(), a.Shape())
			}
		})
	}
}

// A bare NaN, which Python writes, makes no copy untrue.
func TestTrueDocumentWithNaN(t *testing.T) {
	array, attrs := arrayV2(), `{"missing_value": NaN}`
	copied := `{"zarr_consolidated_format":1,"metadata":{"x/.zattrs":` + attrs + `,"x/.zarray":` + array + `,".zgroup":{"zarr_format":2}}}`
	db := openDB(t, nil)
	src := openURL(t, memoryURL(t, map[string]string{".zgroup": `{"zarr_format":2}`, "x/.zarray": array, "x/.zattrs": attrs, ".zmetadata": copied}))
	must.Get(db.Import(bg, src, ImportOptions{}))(t)
	if got, err := at(t, db, "").TrueDocument(bg, ".zmetadata", []byte(copied)); string(got) != copied || err != nil {
		t.Errorf("a true copy became %s, %v", got, err)
	}
}

// A copy that single keys left behind is not what readers of a served version get.
func TestTrueDocument(t *testing.T) {
	for v, key := range map[zarr.Version]string{zarr.V2: ".zmetadata", zarr.V3: "zarr.json"} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			db := openDB(t, nil)
			consolidatedStore(t, db, v)
			s := at(t, db, "")
			stored := must.Get(kv.Get(bg, s, key))(t)
			same, err := s.TrueDocument(bg, key, stored)
			if err != nil || string(same) != string(stored) {
				t.Fatalf("a true copy became %s, %v", same, err)
			}

			// The array x is replaced by hand, and y deleted.
			doc := map[zarr.Version]string{zarr.V2: "x/.zarray", zarr.V3: "x/zarr.json"}[v]
			commit(t, db, "", "by hand", func(s *Session) error {
				b, err := kv.Get(bg, s, doc)
				if err != nil {
					return err
				}
				if err := s.tx.Set(bg, doc, []byte(strings.Replace(string(b), "6", "60", 1))); err != nil {
					return err
				}
				return s.tx.DeletePrefix(bg, "g/y/")
			})
			s = at(t, db, "")
			made := must.Get(s.TrueDocument(bg, key, stored))(t)
			if !strings.Contains(string(made), "60") || strings.Contains(string(made), "g/y") || !strings.Contains(string(made), "g/h/z") {
				t.Errorf("the copy is not that of the documents: %s", made)
			}
			again, err := s.TrueDocument(bg, key, made)
			if err != nil || string(again) != string(made) {
				t.Errorf("what was made is not true: %s, %v", again, err)
			}

			// A node that cannot be opened leaves no copy.
			commit(t, db, "", "broken", func(s *Session) error { return s.tx.Set(bg, doc, []byte("{")) })
			made, err = at(t, db, "").TrueDocument(bg, key, stored)
			switch {
			case v == zarr.V2 && !errors.Is(err, kv.ErrNotFound):
				t.Errorf("a copy with a broken array: %s, %v", made, err)
			case v == zarr.V3 && (err != nil || strings.Contains(string(made), "consolidated")):
				t.Errorf("a copy with a broken array: %s, %v", made, err)
			}
		})
	}
}

// canonical is an object without the order of its members.
func canonical(o *policy.Object) string {
	var v any
	if err := json.Unmarshal(o.Print(), &v); err != nil {
		return string(o.Print())
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// Copies that were dropped are made again from what the session holds when they are made,
// whoever wrote it.
func TestConsolidatedMetadataOfOthersChanges(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		for name, change := range map[string]func(t *testing.T, db *DB, s *Session){
			"a commit of others that the session takes": func(t *testing.T, db *DB, s *Session) {
				commit(t, db, "", "others", func(o *Session) error {
					spec := line(6, 2)
					spec.Version = v
					return errors.Join(setAttr(o, "g/y", "b", 2), create(o, "g/new", spec))
				})
				must.Do(t, s.Refresh(bg, nil))
			},
			"single keys": func(t *testing.T, db *DB, s *Session) {
				key := names.V3
				if v == zarr.V2 {
					key = names.V2Array
				}
				doc, err := kv.Get(bg, s, "x/"+key)
				if err == nil {
					err = s.Set(bg, "g/single/"+key, doc)
				}
				must.Do(t, err)
			},
			"single keys with a condition": func(t *testing.T, db *DB, s *Session) {
				for _, key := range names.Documents(v) {
					if _, err := s.Locate(bg, "g/h/z/"+key); err != nil {
						continue
					}
					must.Do(t, s.DeleteIf(bg, "g/h/z/"+key, Expect{}))
				}
			},
		} {
			t.Run(fmt.Sprint(v, " ", name), func(t *testing.T) {
				db := openDB(t, nil)
				consolidatedStore(t, db, v)
				s := must.Get(db.Begin(bg, ""))(t)
				defer s.Abort()
				must.Do(t, setAttr(s, "x", "a", 1))
				change(t, db, s)
				must.Do(t, setAttr(s, "x", "a", 2))
				must.Get(s.Commit(bg, txn.CommitOptions{Message: "session"}))(t)
				sameNodes(t, at(t, db, ""), "")
			})
		}
	}
}

// A group that is made anew in the place of another has none of its copies.
func TestConsolidatedMetadataOfAReplacedGroup(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		db := openDB(t, nil)
		consolidatedStore(t, db, v)
		commit(t, db, "", "replace", func(s *Session) error {
			spec := line(6, 2)
			spec.Version = v
			err := setAttr(s, "g/y", "a", 1)
			if err == nil {
				_, err = s.ReplaceGroup(bg, "g", v, zarr.Attributes{})
			}
			return errors.Join(err, create(s, "g/other", spec))
		})
		wantCopies(t, at(t, db, ""), "")
	}
}
