package transfer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// destination has refs, and nothing else of a database.
type destination struct {
	DestinationDB
	heads []catalog.Ref
}

func (d destination) Heads() []catalog.Ref { return d.heads }

// The options of a push say which refs of the destination become which versions. The version of a ref is
// the number of its letters here.
func TestChoose(t *testing.T) {
	heads := map[string]catalog.CommitID{}
	for _, name := range []string{"heads/main", "heads/dev", "tags/v1"} {
		heads[name] = catalog.CommitID{byte(len(name))}
	}
	there := destination{heads: []catalog.Ref{{Name: "heads/main"}, {Name: "heads/gone"}, {Name: "tags/old"}}}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "heads/main=10"},
		{Options{Force: true}, "heads/main=10!"},
		{Options{Refs: []RefSpec{{From: "v1"}, {From: "dev", To: "new", Force: true}}}, "heads/new=9! tags/v1=7"},
		{Options{Refs: []RefSpec{{From: "dev"}, {From: "dev", Force: true}}}, "heads/dev=9!"},
		{Options{Refs: []RefSpec{{From: "dev", To: "main"}, {From: "main"}}}, `branch "main": two versions`},
		{Options{Refs: []RefSpec{{From: "none"}}}, "no such"},
		{Options{Refs: []RefSpec{{From: "dev", To: "~x"}}}, "~x"},
		{Options{AllBranches: true}, "heads/dev=9 heads/main=10"},
		{Options{AllTags: true, Prune: true, Force: true}, "tags/old=0! tags/v1=7!"},
		{Options{AllBranches: true, Prune: true}, "heads/dev=9 heads/gone=0 heads/main=10"},
		{Options{Prune: true}, "neither all branches nor all tags"},
	} {
		p := &pushing{t: &Transfer{o: c.o, heads: heads, to: &To{DestinationDB: there}}, refs: map[string]*pushedRef{}}
		err := p.choose()
		var got []string
		for _, name := range slices.Sorted(maps.Keys(p.refs)) {
			text := fmt.Sprintf("%s=%d", name, p.refs[name].id[0])
			if p.refs[name].force {
				text += "!"
			}
			got = append(got, text)
		}
		switch {
		case err == nil && strings.Join(got, " ") != c.want:
			t.Errorf("%+v: %v, want %s", c.o, got, c.want)
		case err != nil && c.want == "no such":
			if !errors.Is(err, catalog.ErrNoRef) {
				t.Errorf("%+v: %v", c.o, err)
			}
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}
