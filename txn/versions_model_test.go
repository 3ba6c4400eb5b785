package txn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// content is one version in the plain model: keys with their bytes, and where
// the arrays are. Arrays are numbered; a number is what an identity is.
type content struct {
	keys   map[string]string
	arrays map[string]int // path to number
}

func (c content) clone() content { return content{maps.Clone(c.keys), maps.Clone(c.arrays)} }

func (c content) equal(d content) bool {
	return maps.Equal(c.keys, d.keys) && maps.Equal(c.arrays, d.arrays)
}

// below returns the keys below a path, relative to it.
func (c content) below(path string) map[string]string {
	out := map[string]string{}
	for k, v := range c.keys {
		if rest, ok := strings.CutPrefix(k, path+"/"); ok {
			out[rest] = v
		}
	}
	return out
}

// move renames everything at and below a path.
func (c content) move(from, to string) {
	for k, v := range maps.Clone(c.keys) {
		if rest, ok := strings.CutPrefix(k, from+"/"); ok || k == from {
			delete(c.keys, k)
			if ok {
				c.keys[to+"/"+rest] = v
			} else {
				c.keys[to] = v
			}
		}
	}
	if n, ok := c.arrays[from]; ok {
		delete(c.arrays, from)
		c.arrays[to] = n
	}
}

func (c content) remove(prefix string) {
	maps.DeleteFunc(c.keys, func(k, _ string) bool { return strings.HasPrefix(k, prefix) })
	maps.DeleteFunc(c.arrays, func(p string, _ int) bool { return strings.HasPrefix(p+"/", prefix) })
}

// mergeRule says what a merge of the model does where both sides changed a key.
type mergeRule struct {
	session bool   // equal changes do not go together, but for two deletes
	chunks  bool   // keys are of an array, where two deletes do not either
	choose  Choice // what to take where they do not
}

// mergeMaps merges plain maps. ok is false if there are conflicts.
func mergeMaps(base, ours, theirs map[string]string, rule mergeRule) (merged map[string]string, ok bool) {
	merged, ok = map[string]string{}, true
	all := maps.Clone(base)
	maps.Copy(all, ours)
	maps.Copy(all, theirs)
	for k := range all {
		b, o, t := base[k], ours[k], theirs[k] // no value is ""
		v := o
		switch {
		case b == t, o == "" && t == "" && !(rule.session && rule.chunks):
		case b == o:
			v = t
		case o == t && !rule.session:
		case rule.choose == Theirs:
			v = t
		case rule.choose == Refuse:
			ok = false
		}
		if v != "" {
			merged[k] = v
		}
	}
	return merged, ok
}

// mergeContents is what a merge must come to. Arrays are followed by their
// numbers; everything else is a merge of plain maps.
func mergeContents(base, ours, theirs content, rule mergeRule) (content, bool) {
	sides := [3]content{base, ours, theirs}
	var docs [3]map[string]string
	var at [3]map[int]string
	ids := map[int]bool{}
	for i, c := range sides {
		docs[i], at[i] = maps.Clone(c.keys), map[int]string{}
		for path, n := range c.arrays {
			at[i][n], ids[n] = path, true
			maps.DeleteFunc(docs[i], func(k, _ string) bool { return strings.HasPrefix(k, path+"/") })
		}
	}
	merged, ok := mergeMaps(docs[0], docs[1], docs[2], rule)
	out := content{merged, map[string]int{}}
	for _, n := range slices.Sorted(maps.Keys(ids)) {
		path, chunks, fine := mergeArray(sides, [3]string{at[0][n], at[1][n], at[2][n]}, rule.session)
		ok = ok && fine
		if path == "" {
			continue
		}
		out.arrays[path] = n
		for k, v := range chunks {
			out.keys[path+"/"+k] = v
		}
	}
	return out, ok
}

// mergeArray merges one array, which has a path where it exists.
func mergeArray(sides [3]content, path [3]string, session bool) (to string, keys map[string]string, ok bool) {
	base, ours, theirs := path[0], path[1], path[2]
	rule := mergeRule{session: session, chunks: true}
	b, o, t := sides[0].below(base), sides[1].below(ours), sides[2].below(theirs)
	for i, p := range path {
		if p == "" {
			[]map[string]string{b, o, t}[i] = nil
		}
	}
	switch {
	case base == "" && ours != "" && theirs != "": // both took it from elsewhere
		keys, ok = mergeMaps(map[string]string{}, o, t, rule)
		return ours, keys, ok && ours == theirs
	case base == "": // one side has made it
		return ours + theirs, mergeNew(o, t, ours != ""), true
	case ours == "" && theirs == "":
		return "", nil, true
	case ours == "":
		return "", nil, base == theirs && !hasNew(b, t)
	case theirs == "":
		return "", nil, base == ours && !hasNew(b, o)
	}
	keys, ok = mergeMaps(b, o, t, rule)
	switch {
	case theirs == base, ours == theirs && !session:
		return ours, keys, ok
	case ours == base:
		return theirs, keys, ok
	}
	return ours, keys, false
}

func mergeNew(o, t map[string]string, ours bool) map[string]string {
	if ours {
		return o
	}
	return t
}

// hasNew reports whether a side has anything that was not there before.
func hasNew(old, new map[string]string) bool {
	for k, v := range new {
		if old[k] != v {
			return true
		}
	}
	return false
}

// modelCommit is a commit in the model.
type modelCommit struct {
	parents []CommitID
	content content
}

// model is a database that is plain maps.
type model struct {
	commits map[CommitID]modelCommit
	order   []CommitID // as they were made
	refs    map[string]CommitID
	moves   map[string][][2]CommitID // of each ref: from, to
	moved   map[string]int           // how often, also where moves were forgotten
	expired map[CommitID]bool        // these are not in order any more
}

// needs returns the commits that must not expire: those of refs, and the best common ancestors
// of two of them, unless these may be let go.
func (m *model) needs(dropBases bool) map[CommitID]bool {
	must := map[CommitID]bool{}
	for _, id := range m.refs {
		must[id] = true
		for _, other := range m.refs {
			for _, base := range m.bases(id, other) {
				must[base] = !dropBases && !m.expired[base] || must[base]
			}
		}
	}
	return must
}

// expire takes over which commits are gone, and forgets all but the newest moves
// of refs.
func (m *model) expire(gone func(CommitID) (bool, error), keep int, dropBases bool) error {
	must := m.needs(dropBases)
	for ref, moves := range m.moves {
		m.moves[ref] = moves[max(0, len(moves)-keep):]
		for _, mv := range m.moves[ref] {
			must[mv[1]] = true
		}
	}
	for id := range m.commits {
		is, err := gone(id)
		switch {
		case err != nil:
			return err
		case is && must[id]:
			return fmt.Errorf("commit %s has expired", id.Short())
		case !is && m.expired[id]:
			return fmt.Errorf("commit %s is back", id.Short())
		case is:
			m.expired[id] = true
		}
	}
	m.order = slices.DeleteFunc(m.order, func(id CommitID) bool { return m.expired[id] })
	return nil
}

func (m *model) move(ref string, to CommitID) {
	m.moves[ref] = append(m.moves[ref], [2]CommitID{m.refs[ref], to})
	m.moved[ref]++
	if m.refs[ref] = to; to.IsZero() {
		delete(m.refs, ref)
	}
}

func (m *model) add(c *Commit, parents []CommitID, content content) error {
	if !slices.Equal(c.Parents, parents) {
		return fmt.Errorf("the commit has parents %v, want %v", c.Parents, parents)
	}
	if old, ok := m.commits[c.ID]; ok && !old.content.equal(content) {
		return fmt.Errorf("commit %v is there with other content", c.ID)
	}
	m.commits[c.ID] = modelCommit{parents, content}
	m.order = append(m.order, c.ID)
	delete(m.expired, c.ID) // it may have been made before
	return nil
}

// ancestors finds a commit and those before it: so many generations of them, all if depth is 0.
func (m *model) ancestors(id CommitID, depth int) map[CommitID]bool {
	seen := map[CommitID]bool{}
	for level, n := []CommitID{id}, 0; len(level) > 0 && (depth == 0 || n < depth); n++ {
		var up []CommitID
		for _, id := range level {
			if !seen[id] {
				seen[id] = true
				up = append(up, m.commits[id].parents...)
			}
		}
		level = up
	}
	return seen
}

var errModelBases = errors.New("several bases")

// base finds the best common ancestor.
func (m *model) base(a, b CommitID) (CommitID, error) {
	best := m.bases(a, b)
	if len(best) != 1 {
		return CommitID{}, errModelBases
	}
	return best[0], nil
}

// bases finds all best common ancestors.
func (m *model) bases(a, b CommitID) []CommitID {
	inA, inB := m.ancestors(a, 0), m.ancestors(b, 0)
	var best []CommitID
	for id := range inA {
		if inB[id] {
			best = append(best, id)
		}
	}
	all := slices.Clone(best)
	best = slices.DeleteFunc(best, func(id CommitID) bool {
		return slices.ContainsFunc(all, func(other CommitID) bool { return other != id && m.ancestors(other, 0)[id] })
	})
	return best
}
