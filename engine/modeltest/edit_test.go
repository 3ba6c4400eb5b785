package modeltest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Edits change a session and its model. Few paths and few values make conflicts between
// sessions likely.

func stepEdit(r *run) {
	_, s := r.session()
	for range 1 + r.rng.IntN(4) {
		r.edit(s)
	}
	r.compareSession(s)
}

// stepUpdate makes a commit of a few edits.
func stepUpdate(r *run) {
	d := r.database()
	branch := one(r, d.branches())
	s := r.startSession(d, branch)
	for range 1 + r.rng.IntN(3) {
		r.edit(s)
	}
	r.commit(d, s, false)
}

func (r *run) edit(s *session) {
	edits := []struct {
		often int
		do    func(*run, *session)
	}{
		{6, editWrite}, {3, editCreate}, {2, editResize}, {2, editAttrs}, {1, editDelete}, {1, editRemove}, {1, editMove}, {1, editCopy}, {1, editGroup}, {2, editCount}, {2, editAppend},
	}
	if len(s.work.arrays()) < 3 {
		editCreate(r, s)
		return
	}
	total := 0
	for _, e := range edits {
		total += e.often
	}
	n := r.rng.IntN(total)
	for _, e := range edits {
		if n -= e.often; n < 0 {
			e.do(r, s)
			return
		}
	}
}

func joined(group, name string) string { return strings.Trim(group+"/"+name, "/") }

// groupsOf are the groups of a tree, the root also if there is none yet.
func groupsOf(t tree) []string {
	if g := t.groups(); len(g) > 0 {
		return g
	}
	return []string{""}
}

// place is a path for a new node, which may be taken.
func (r *run) place(s *session, prefix string) string {
	group := one(r, groupsOf(s.work))
	if strings.Count(group, "/") > 1 {
		group = ""
	}
	return joined(group, fmt.Sprint(prefix, r.rng.IntN(5)))
}

func (r *run) existing(s *session) (string, *node) {
	list := s.work.arrays()
	if len(list) == 0 {
		return "", nil
	}
	p := one(r, list[:1+r.rng.IntN(len(list))]) // the first ones often: there sessions meet
	return p, s.work[p]
}

// open opens an array of a session.
func (r *run) open(s *session, p string) *zarr.Array {
	a, err := s.s.Array(bg, p)
	r.must(err, "open /"+p)
	return a
}

// value is a random one; small ones come often.
func (r *run) value(k *kind) int32 {
	if r.chance(2) {
		return r.rng.Int32N(min(4, k.limit))
	}
	return r.rng.Int32N(k.limit)
}

func (r *run) shape(k *kind) (shape []int64) {
	for _, n := range k.chunk {
		most := 3 * n
		if k.name == "long" {
			most = 1300 * n
			shape = append(shape, most-r.rng.Int64N(200*n))
			continue
		}
		shape = append(shape, 1+r.rng.Int64N(most))
	}
	return shape
}

func editCreate(r *run, s *session) {
	k := one(r, kinds)
	if k.name == "long" && slices.ContainsFunc(s.work.arrays(), func(p string) bool { return s.work[p].array.kind == k }) {
		k = kinds[0]
	}
	r.create(s, k, r.place(s, "a"))
}

func (r *run) create(s *session, k *kind, p string) {
	fill := int32(0)
	if r.chance(3) {
		fill = 1
	}
	spec := r.spec(k, fill)
	spec.Shape = r.shape(k)
	r.note("create %s%v at /%s", k.name, spec.Shape, p)
	a, err := s.s.CreateArray(bg, p, spec)
	if s.work[p] != nil {
		r.expect(err, "create", zarr.ErrExists)
		return
	}
	r.must(err, "create /"+p)
	n := &node{id: r.fresh(), array: newArray(k, spec.Shape, fill)}
	s.work.put(p, tree{"": n})
	if !r.chance(4) {
		r.write(s, p, a, whole(n.array), r.chance(4))
	}
}

// spec is that of an array without its shape.
func (r *run) spec(k *kind, fill int32) zarr.Spec {
	spec := k.spec(r.format)
	spec.Version = r.format
	if r.format == zarr.V3 {
		spec.DimensionNames = dimensions[:len(k.chunk)]
	}
	text, err := json.Marshal(k.elems(fill))
	r.must(err, "fill value")
	spec.FillValue = text
	return spec
}

func whole(a *array) selection {
	var s selection
	for _, n := range a.shape {
		s.lo, s.hi, s.step = append(s.lo, 0), append(s.hi, n), append(s.step, 1)
	}
	return s
}

// region is a random part of an array: often one element, a row or a column.
func (r *run) region(a *array, steps bool) selection {
	s := whole(a)
	for d, n := range a.shape {
		if n == 0 {
			continue
		}
		switch r.rng.IntN(4) {
		case 0: // one element
			s.lo[d] = r.rng.Int64N(n)
			s.hi[d] = s.lo[d] + 1
		case 1:
			s.lo[d] = r.rng.Int64N(n)
			s.hi[d] = s.lo[d] + 1 + r.rng.Int64N(n-s.lo[d])
		case 2: // a few chunks of many
			s.lo[d] = r.rng.Int64N(n)
			s.hi[d] = min(n, s.lo[d]+1+r.rng.Int64N(2*a.kind.chunk[d]))
		}
		if steps && r.chance(4) {
			s.step[d] = 1 + r.rng.Int64N(1+a.kind.chunk[d])
		}
	}
	return s
}

// write writes random values, or one of them everywhere.
func (r *run) write(s *session, p string, a *zarr.Array, sel selection, same bool) {
	n := s.work[p]
	values := make([]int32, product(sel.shape()))
	v := r.value(n.array.kind)
	for i := range values {
		if values[i] = v; !same {
			values[i] = r.rng.Int32N(n.array.kind.limit)
		}
	}
	r.note("write /%s[%v]", p, sel)
	r.must(n.array.kind.write(bg, a, sel.zarr(), values), "write /"+p)
	s.work[p] = n.withArray(n.array.write(sel, values))
}

func editWrite(r *run, s *session) {
	p, n := r.existing(s)
	if n == nil || product(n.array.shape) == 0 {
		return
	}
	sel := r.region(n.array, r.chance(4) && !n.array.hides())
	if n.array.kind.shards && n.array.hides() {
		sel = whole(n.array)
	}
	r.write(s, p, r.open(s, p), sel, r.chance(2))
}

// editCount adds 1 to the first element. If two sessions count, an increment may get lost.
func editCount(r *run, s *session) {
	p, n := r.existing(s)
	if n == nil || product(n.array.shape) == 0 || n.array.kind.limit < 10 || n.array.hides() {
		return
	}
	sel := whole(n.array)
	for d := range sel.hi {
		sel.hi[d] = 1
	}
	value := []int32{(n.array.element(coords{}) + 1) % n.array.kind.limit}
	r.note("count in /%s", p)
	index := make([]zarr.Index, len(sel.lo))
	for d := range index {
		index[d] = zarr.At(0)
	}
	r.must(n.array.kind.write(bg, r.open(s, p), zarr.Sel(index...), value), "count")
	s.work[p] = n.withArray(n.array.write(sel, value))
}

func editResize(r *run, s *session) {
	p, n := r.existing(s)
	if n == nil {
		return
	}
	r.resize(s, p, r.rng.IntN(len(n.array.shape)))
}

// resize changes the length of an array along an axis.
func (r *run) resize(s *session, p string, d int) {
	n := s.work[p]
	shape := slices.Clone(n.array.shape)
	switch r.rng.IntN(3) {
	case 0:
		shape[d] = r.rng.Int64N(shape[d] + 1)
	case 1:
		shape[d] -= shape[d] % n.array.kind.chunk[d]
	case 2:
		shape[d] += 1 + r.rng.Int64N(2*n.array.kind.chunk[d])
	}
	r.note("resize /%s from %v to %v", p, n.array.shape, shape)
	a := r.open(s, p)
	r.must(a.Resize(bg, shape, zarr.ResizeOptions{}), "resize /"+p)
	s.work[p] = n.withArray(n.array.resize(shape))
}

// editAppend makes an array longer by layers of values.
func editAppend(r *run, s *session) {
	p, n := r.existing(s)
	if n == nil || !n.array.kind.plain || n.array.hides() || slices.Contains(n.array.shape, 0) {
		return
	}
	shape := slices.Clone(n.array.shape)
	axis := r.rng.IntN(len(shape))
	old := shape[axis]
	shape[axis] += 1 + r.rng.Int64N(n.array.kind.chunk[axis]+2)
	longer := n.array.resize(shape)
	sel := whole(longer)
	sel.lo[axis] = old
	values := make([]int32, product(sel.shape()))
	var data []byte
	for i := range values {
		values[i] = r.rng.Int32N(n.array.kind.limit)
		data = binary.NativeEndian.AppendUint32(data, uint32(values[i]))
	}
	r.note("append %d to /%s along %d", shape[axis]-old, p, axis)
	a := r.open(s, p)
	r.must(a.Resize(bg, longer.shape, zarr.ResizeOptions{}), "lengthen /"+p)
	r.must(a.WriteBytes(bg, sel.zarr(), data), "append to /"+p)
	s.work[p] = n.withArray(longer.write(sel, values))
}

// editDelete deletes the chunks of an array from a number on along an axis, which
// then have the fill value.
func editDelete(r *run, s *session) {
	p, n := r.existing(s)
	if n == nil || slices.Contains(n.array.shape, 0) {
		return
	}
	axis := r.rng.IntN(len(n.array.shape))
	from := r.rng.Int64N((n.array.shape[axis]-1)/n.array.kind.chunk[axis] + 1)
	r.note("delete chunks of /%s from %d along %d", p, from, axis)
	prefix, sep, rank, ok := r.open(s, p).Meta().Form()
	if !ok {
		r.fail("/%s has no form", p)
	}
	r.must(s.s.DeleteChunks(bg, p, txn.Form{Prefix: prefix, Sep: sep, Rank: rank}, axis, from), "delete chunks of /"+p)
	s.work[p] = n.withArray(n.array.deleteChunks(axis, from))
}

func editAttrs(r *run, s *session) {
	if len(s.work) == 0 {
		return
	}
	p := one(r, s.work.paths())
	name, value := fmt.Sprint("k", r.rng.IntN(3)), fmt.Sprint(r.rng.IntN(3))
	if r.chance(4) {
		value = ""
	}
	r.note("attribute %s=%s of /%s", name, value, p)
	n, err := s.s.Node(bg, p)
	r.must(err, "open /"+p)
	attrs := n.Meta().Clone().Attributes
	if value == "" {
		attrs.Delete(name)
	} else {
		r.must(attrs.Set(name, json.RawMessage(value)), "attribute")
	}
	r.must(n.SetAttributes(bg, attrs), "attributes of /"+p)
	s.work[p] = s.work[p].withAttr(name, value)
}

func editGroup(r *run, s *session) {
	p := r.place(s, "g")
	r.note("group /%s", p)
	_, err := s.s.CreateGroup(bg, p, r.format, zarr.Attributes{})
	if s.work[p] != nil {
		r.expect(err, "group", zarr.ErrExists)
		return
	}
	r.must(err, "group /"+p)
	s.work.put(p, tree{"": &node{}})
}

// below picks a node that is not the root.
func (r *run) below(s *session) string {
	list := slices.DeleteFunc(s.work.paths(), func(p string) bool { return p == "" })
	if len(list) == 0 {
		return ""
	}
	return one(r, list)
}

func editRemove(r *run, s *session) {
	if p := r.below(s); p != "" {
		r.note("remove /%s", p)
		r.must(s.s.Remove(bg, p), "remove /"+p)
		s.work.remove(p)
	}
}

func editMove(r *run, s *session) {
	from, to := r.below(s), r.place(s, "a")
	if from == "" || inside(to, from) {
		return
	}
	r.note("move /%s to /%s", from, to)
	err := s.s.Rename(bg, from, to)
	if s.work[to] != nil {
		r.expect(err, "move", zarr.ErrExists)
		return
	}
	r.must(err, "move")
	nodes := s.work.below(from)
	s.work.remove(from)
	s.work.put(to, nodes)
}

// editCopy copies a node of the session or of an open version.
func editCopy(r *run, s *session) {
	to := r.place(s, "a")
	var src *engine.Snapshot
	t := s.work
	if d := r.owner(s); r.chance(2) && len(d.held) > 0 {
		h := one(r, d.held)
		src, t = h.at, h.v.tree
		r.note("of %s", h.v.name)
	}
	list := slices.DeleteFunc(t.paths(), func(p string) bool { return p == "" || src == nil && inside(to, p) })
	if len(list) == 0 || path.Base(to) == "" {
		return
	}
	from := one(r, list)
	r.note("copy /%s to /%s", from, to)
	err := s.s.CopyNode(bg, src, from, to)
	if s.work[to] != nil {
		r.expect(err, "copy", zarr.ErrExists)
		return
	}
	r.must(err, "copy")
	s.work.put(to, r.copies(t.below(from)))
}

// copies gives arrays new identities.
func (r *run) copies(t tree) tree {
	out := tree{}
	for _, p := range t.paths() {
		n := *t[p]
		if n.array != nil {
			n.id = r.fresh()
		}
		out[p] = &n
	}
	return out
}

// owner is the database that a session is of.
func (r *run) owner(s *session) *database {
	for _, d := range r.dbs {
		if slices.Contains(d.sessions, s) {
			return d
		}
	}
	panic("a session of no database")
}
