package local

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// Versions are told as they are in the process.
func TestVersions(t *testing.T) {
	h, c := served(t, nil, nil)
	first := put(t, h.db, map[string][]byte{"a": {1}, "b": {1}})
	second := put(t, h.db, map[string][]byte{"a": {2}, "c": random(1, 3000)})
	must.Do(t, errors.Join(h.db.Versions().CreateBranch(bg, "x", second), h.db.Versions().CreateTag(bg, "v1", first)))
	branches, tags, err := c.Source().Refs(bg)
	if got, want := fmt.Sprint(branches, tags, err), fmt.Sprint([]txn.Ref{{Name: "main", Commit: second}, {Name: "x", Commit: second}}, []txn.Ref{{Name: "v1", Commit: first}}, nil); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, err := c.Source().Resolve(bg, "v1"); err != nil || got != first {
		t.Errorf("%+v, %v", got, err)
	}
	p := must.Get(c.Peer(nil))(t)
	defer p.Close()
	ids := func(path string) (list []txn.CommitID) {
		if path == "" {
			for commit, err := range p.Versions().Log(bg, second) {
				must.Do(t, err)
				list = append(list, commit.ID)
			}
			return list
		}
		for commit, err := range p.Versions().History(bg, second, path, false) {
			must.Do(t, err)
			list = append(list, commit.ID)
		}
		return list
	}
	if all := ids(""); len(all) != 3 || all[0] != second || all[1] != first {
		t.Errorf("%v", all)
	}
	if b := ids("b"); len(b) != 1 || b[0] != first {
		t.Errorf("%v", b)
	}
	changes := ""
	for change, err := range p.Versions().Diff(bg, first, second, "") {
		must.Do(t, err)
		changes += fmt.Sprint(change.Key, change.Old != nil, change.New.Kind, change.New.Length, " ")
	}
	if changes != "atrueinline1 cfalsenative3000 " {
		t.Errorf("%q", changes)
	}
	s := begin(t, c)
	must.Do(t, s.Set(bg, "d", []byte("d")))
	for change, err := range s.Changes(bg, "") {
		if err != nil || change.Key != "d" || change.Old != nil {
			t.Errorf("%+v, %v", change, err)
		}
	}
	list, err := p.Sessions(bg)
	if err != nil || len(list) != 1 || list[0].ID != s.ID() || !list[0].Open {
		t.Errorf("%+v, %v", list, err)
	}
}
