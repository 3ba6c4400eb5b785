package txn

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// keyOf prints the key of a chunk.
func keyOf(g *ChunkGrid, number int64) string {
	words := make([]string, len(g.Counts))
	for d := len(words) - 1; d >= 0; d-- {
		words[d] = strconv.FormatInt(number%g.Counts[d], 10)
		number /= g.Counts[d]
	}
	return g.Dir + strings.Join(words, string(g.Sep))
}

// randomReferences is a part of a random grid.
func randomReferences(rnd *rand.Rand) (*ChunkGrid, *References) {
	g := &ChunkGrid{Dir: []string{"", "t/", "t/0/", "t/1/", "g/a/"}[rnd.IntN(5)], Sep: "./"[rnd.IntN(2)]}
	total := int64(1)
	for range 1 + rnd.IntN(3) {
		n := 1 + rnd.Int64N([]int64{3, 200, 20_000}[rnd.IntN(3)])
		g.Counts = append(g.Counts, n)
		total *= n
	}
	r := &References{First: rnd.Int64N(total)}
	if rnd.IntN(2) == 0 {
		r.First = min(r.First, rnd.Int64N(4)*7)
	}
	for range min(total-r.First, 1+rnd.Int64N(120)) {
		url := ""
		if rnd.IntN(9) > 0 {
			url = fmt.Sprintf("s3://b/%d", rnd.IntN(4))
		}
		r.URL = append(r.URL, url)
		r.Offset = append(r.Offset, rnd.Int64N(100))
		r.Length = append(r.Length, rnd.Int64N(100)-10)
	}
	if rnd.IntN(3) == 0 {
		for range r.URL {
			r.Validator = append(r.Validator, []string{"", "v"}[rnd.IntN(2)])
		}
	}
	return g, r
}

// References by columns are what they are one by one, down to the pages, whatever
// the documents say of the grids.
func TestSetReferences(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	docs := []string{"f=:.:2 array", "f=:/:2 array", "f=:/:3 array", "f=:.:1 array", "f=:/:1 array", "f=c/:/:2 array"}
	db := bulkDB(t)
	for round := range rounds {
		var both [2]*Bulk
		var sessions [2]*Session
		for i := range both {
			sessions[i] = begin(t, db)
			b := must.Get(sessions[i].Bulk(bg, "in", false))(t)
			if round%2 == 1 {
				b.node.Limits = namespace.BuilderLimits{Builders: 1, Pending: 3, Held: 1000}
			}
			both[i] = b
		}
		for range 1 + rnd.IntN(12) {
			if rnd.IntN(3) == 0 {
				p := bulkPut{key: []string{"t/", "t/0/", "g/a/"}[rnd.IntN(3)] + ".zarray", bytes: docs[rnd.IntN(len(docs))]}
				p.bulk(t, both[0])
				p.bulk(t, both[1])
				continue
			}
			g, r := randomReferences(rnd)
			for i, url := range r.URL {
				if url == "" {
					continue
				}
				src, offset, length := tree.Source{URL: url}, uint64(r.Offset[i]), uint64(r.Length[i])
				if r.Validator != nil {
					src.Validator = r.Validator[i]
				}
				if r.Length[i] < 0 {
					src.Whole, offset, length = true, 0, 0
				}
				must.Do(t, both[0].SetVirtual(bg, keyOf(g, r.First+int64(i)), src, offset, length))
			}
			must.Do(t, both[1].SetReferences(bg, g, r))
		}
		for i := range both {
			must.Do(t, both[i].Finish(bg))
		}
		if sessions[0].work != sessions[1].work {
			want, got := stored(t, sessions[0]), stored(t, sessions[1])
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("round %d: %s is %s, want %s", round, k, got[k], want[k])
				}
			}
			t.Fatalf("round %d: %d keys, want %d, or other pages for the same", round, len(got), len(want))
		}
		sessions[0].Abort()
		sessions[1].Abort()
	}
}

// Documents are the keys that are no chunks.
func TestDocuments(t *testing.T) {
	db := bulkDB(t)
	files := map[string]string{
		"g/.zgroup": "group", "g/t/.zarray": "f=:.:2 array", "g/t/0.1": "chunk", "g/t/1.0": "chunk", "g/t/0.1.2": "none of the array's",
		"g/t/.zattrs": "{}", "g/u/.zarray": "f=c/:/:2 array", "g/u/c/0/1": "chunk", "notes": "text", "1.1": "of no array",
	}
	s := begin(t, db)
	for key, text := range files {
		must.Do(t, s.Set(bg, key, []byte(text)))
	}
	c := must.Get(s.Commit(bg, CommitOptions{}))(t)
	snap := must.Get(db.Snapshot(bg, c.ID))(t)
	defer snap.Close()
	for prefix, n := range map[string]int{"": 7, "g/t/": 3, "g/t": 3, "g/t/0": 1, "none": 0} {
		got := map[string]KeyValue{}
		for v, err := range snap.Documents(bg, prefix) {
			must.Do(t, err)
			got[v.Key] = v
		}
		found := 0
		for v, err := range snap.Values(bg, prefix) {
			must.Do(t, err)
			if files[v.Key] != "chunk" {
				found++
				if got[v.Key] != v {
					t.Errorf("%q: %+v, want %+v", prefix, got[v.Key], v)
				}
			}
		}
		if found != n || len(got) != n {
			t.Errorf("%q: %d documents, %d in all values, want %d", prefix, len(got), found, n)
		}
	}
}
