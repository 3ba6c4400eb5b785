package hdf5

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
)

// link is a name in a group.
type link struct {
	name string
	addr int64  // of a hard link, else undefined
	soft string // the path of a soft link
	odd  string // what else it is: an external link, one of a user
}

// isGroup reports whether an object is a group.
func (o *object) isGroup() bool {
	return o.find(msgSymbols) != nil || o.find(msgLinkInfo) != nil || o.find(msgLink) != nil
}

// isDataset reports whether an object is a dataset; what is neither is a data type.
func (o *object) isDataset() bool { return o.find(msgLayout) != nil && o.find(msgSpace) != nil }

// links returns the links of a group, sorted by name.
func (f *file) links(ctx context.Context, o *object) ([]link, error) {
	if o.odd != nil {
		return nil, o.odd
	}
	var list []link
	for i := range o.msgs {
		m := &o.msgs[i]
		var err error
		switch m.typ {
		case msgSymbols:
			err = f.symbols(ctx, f.message(m), &list)
		case msgLinkInfo:
			err = f.denseLinks(ctx, f.message(m), &list)
		case msgLink:
			var d *dec
			if d, err = f.resolve(ctx, m); err == nil {
				err = readLink(d, &list)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b link) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(list); i++ {
		if list[i].name == list[i-1].name {
			return nil, formats.Invalid("hdf5: the group at %d has two links %q", o.addr, list[i].name)
		}
	}
	return list, nil
}

// linksAhead returns the parts of the file where the links of a group begin.
func (f *file) linksAhead(o *object) (parts []part) {
	for _, m := range o.msgs {
		d := f.message(&m)
		switch m.typ {
		case msgSymbols:
			parts = append(parts, part{d.address(), 1024}, part{d.address(), 512})
		case msgLinkInfo, msgAttrInfo:
			heap, names := infoAddresses(d, m.typ)
			if heap != undefined {
				parts = append(parts, part{heap, 1024}, part{names, 1024})
			}
		}
	}
	return parts
}

// symbols reads the links of a group of the first version.
func (f *file) symbols(ctx context.Context, d *dec, list *[]link) error {
	root, heapAddr := d.address(), d.address()
	if d.err != nil {
		return d.err
	}
	heap, err := f.localHeap(ctx, heapAddr)
	if err != nil {
		return err
	}
	w := f.walk()
	t := &tree1{f: f, root: root, key: f.lenSize, k: f.groupK}
	return t.each(ctx, func(_ []byte, addr int64) error {
		const what = "a node of symbols"
		d, err := f.readSigned(ctx, what, "SNOD", 1, addr, 8)
		if err != nil {
			return err
		}
		d.skip(1)
		n, entry := d.u16(), f.lenSize+f.addrSize+24
		if d, err = f.readWalked(ctx, w, what, addr, int64(8+n*entry)); err != nil {
			return err
		}
		d.off = 8
		for range n {
			name, header := d.uint(f.lenSize), d.address()
			cached := d.u32()
			d.skip(4)
			scratch := d.take(16)
			if d.err != nil {
				return d.err
			}
			l := link{addr: header}
			if l.name, err = heap.text(name); err != nil {
				return err
			}
			if cached == 2 {
				l.addr = undefined
				if l.soft, err = heap.text(number(scratch[:4])); err != nil {
					return err
				}
			}
			*list = append(*list, l)
		}
		return nil
	})
}

// infoAddresses reads the addresses of the heap and of the B-tree of names in a message
// about links or attributes.
func infoAddresses(d *dec, typ int) (heap, names int64) {
	d.skip(1)
	if flags := d.u8(); flags&1 != 0 {
		if typ == msgLinkInfo {
			d.skip(8)
		} else {
			d.skip(2)
		}
	}
	return d.address(), d.address()
}

// dense calls fn with the objects of a heap that a B-tree lists. at is where their IDs
// begin in a record.
func (f *file) dense(ctx context.Context, heap, names int64, at int, fn func(record, id []byte, h *fractalHeap) error) error {
	h, err := f.heap(ctx, heap)
	if err != nil {
		return err
	}
	t, err := f.tree2(ctx, names)
	if err != nil {
		return err
	}
	return t.each(ctx, func(r []byte) error {
		if len(r) < at+h.idLen {
			return formats.Invalid("hdf5: the B-tree at %d has records of %d bytes", names, len(r))
		}
		return fn(r, r[at:at+h.idLen], h)
	})
}

// denseLinks reads the links that are in a heap.
func (f *file) denseLinks(ctx context.Context, d *dec, list *[]link) error {
	heap, names := infoAddresses(d, msgLinkInfo)
	if d.err != nil || heap == undefined {
		return d.err
	}
	return f.dense(ctx, heap, names, 4, func(_, id []byte, h *fractalHeap) error {
		b, err := h.object(ctx, id)
		if err == nil {
			err = f.charge(int64(len(b) + 64))
		}
		if err != nil {
			return err
		}
		return readLink(&dec{f: f, b: b, what: "a link", addr: heap}, list)
	})
}

// readLink reads a link message.
func readLink(d *dec, list *[]link) error {
	version, flags := d.u8(), d.u8()
	if d.err == nil && version != 1 {
		return formats.Unsupported("hdf5: links of version %d", version)
	}
	kind := byte(0)
	if flags&8 != 0 {
		kind = d.u8()
	}
	if flags&4 != 0 {
		d.skip(8) // order of creation
	}
	if flags&16 != 0 {
		d.skip(1) // character set
	}
	n := d.uint(1 << (flags & 3))
	if d.err == nil && n > uint64(d.left()) {
		d.fail("has a name of %d bytes", n)
	}
	l := link{name: string(d.take(int(n))), addr: undefined}
	switch kind {
	case 0:
		l.addr = d.address()
	case 1:
		l.soft = string(d.take(d.u16()))
	case 64:
		value := d.take(d.u16())
		l.odd = "an external link"
		if len(value) > 0 {
			if file, path, ok := strings.Cut(string(value[1:]), "\x00"); ok {
				l.odd += " to " + strings.TrimRight(path, "\x00") + " in the file " + file + ", which is not opened"
			}
		}
	default:
		l.odd = "a link of a type of its writer"
	}
	*list = append(*list, l)
	return d.err
}

// node is an object under one of its names.
type node struct {
	path, name string
	parent     *node
	o          *object
	group      bool
	odd        error // why a name leads to no object
	soft       bool  // a soft link leads to it, or to a group around it
	children   map[string]*node
	set        *dataset // nil if the object is not a dataset
}

const (
	// maxDepth bounds how deep groups are nested.
	maxDepth = 256
	// maxNames bounds the names of objects, of which each may have several.
	maxNames = 1 << 20
	// maxSoft bounds the soft links that follow one another.
	maxSoft = 32
)

// soft is a soft link that is not followed yet.
type soft struct {
	parent *node
	link
}

// scan finds all objects below the root, level by level, and then the targets of soft
// links.
type scan struct {
	f       *file
	root    *node
	objects map[int64]*object
	nodes   []*node
	softs   []soft
	names   int
}

func (f *file) scan(ctx context.Context) (*scan, error) {
	s := &scan{f: f, objects: map[int64]*object{}}
	o, err := f.object(ctx, f.root)
	if err != nil {
		return nil, err
	}
	s.objects[f.root] = o
	s.root = &node{o: o, group: true}
	s.nodes = []*node{s.root}
	if err := s.levels(ctx, []*node{s.root}); err != nil {
		return nil, err
	}
	return s, s.follow(ctx)
}

// levels reads the groups of a level, and all levels below.
func (s *scan) levels(ctx context.Context, level []*node) error {
	f := s.f
	for depth := 0; len(level) > 0; depth++ {
		var parts []part
		for _, n := range level {
			if n.group {
				parts = append(parts, f.linksAhead(n.o)...)
			}
		}
		if err := f.ahead(ctx, parts); err != nil {
			return err
		}
		var hard []soft
		var addrs []int64
		for _, n := range level {
			if !n.group {
				continue
			}
			links, err := f.links(ctx, n.o)
			if err != nil {
				return withPath(n.path, err)
			}
			for _, l := range links {
				if s.names++; s.names > maxNames {
					return formats.Unsupported("hdf5: more than %d names of objects", maxNames)
				}
				if strings.Contains(l.name, "/") || l.name == "" || l.name == "." {
					return withPath(n.path, formats.Invalid("hdf5: a link with the name %q", l.name))
				}
				if l.addr == undefined {
					s.softs = append(s.softs, soft{n, l})
					continue
				}
				if _, ok := s.objects[l.addr]; !ok {
					s.objects[l.addr] = nil
					addrs = append(addrs, l.addr)
				}
				hard = append(hard, soft{n, l})
			}
		}
		read, err := f.objects(ctx, addrs)
		if err != nil {
			return err
		}
		for _, o := range read {
			s.objects[o.addr] = o
		}
		level = level[:0]
		for _, x := range hard {
			n, err := s.add(x.parent, x.name, s.objects[x.addr], x.parent.soft)
			if err != nil {
				return err
			}
			if n != nil && n.group {
				level = append(level, n)
			}
		}
	}
	return nil
}

// add adds an object under a name, unless it is one of the groups around it.
func (s *scan) add(parent *node, name string, o *object, soft bool) (*node, error) {
	if err := s.f.charge(int64(len(parent.path) + len(name))); err != nil {
		return nil, err
	}
	n := &node{path: formats.Join(parent.path, name), name: name, parent: parent, o: o, group: o.isGroup(), soft: soft}
	if n.group {
		depth := 0
		for p := parent; p != nil; p = p.parent {
			if p.o == o {
				s.f.o.Warned("the group %s is left out: it is the group %s around it", n.path, orRoot(p.path))
				return nil, nil
			}
			if depth++; depth > maxDepth {
				return nil, formats.Unsupported("hdf5: groups more than %d deep", maxDepth)
			}
		}
	}
	s.put(n)
	return n, nil
}

func (s *scan) put(n *node) {
	if n.parent.children == nil {
		n.parent.children = map[string]*node{}
	}
	n.parent.children[n.name] = n
	s.nodes = append(s.nodes, n)
}

// follow resolves soft links. Groups that they lead to may have more.
func (s *scan) follow(ctx context.Context) error {
	for rounds := 0; len(s.softs) > 0; rounds++ {
		softs := s.softs
		s.softs = nil
		var level []*node
		var later []soft
		for _, x := range softs {
			if x.odd != "" {
				s.put(&node{path: formats.Join(x.parent.path, x.name), name: x.name, parent: x.parent, odd: formats.Unsupported("hdf5: %s", x.odd)})
				continue
			}
			target := s.target(x)
			if target == nil || target.odd != nil {
				later = append(later, x)
				continue
			}
			n, err := s.add(x.parent, x.name, target.o, true)
			if err != nil {
				return err
			}
			if n != nil && n.group {
				level = append(level, n)
			}
		}
		progress := len(later) < len(softs)
		if err := s.levels(ctx, level); err != nil {
			return err
		}
		if !progress && len(level) == 0 || rounds > maxSoft {
			for _, x := range append(later, s.softs...) {
				s.f.o.Warned("the soft link %s leads to %q, where nothing is", formats.Join(x.parent.path, x.name), x.soft)
			}
			return nil
		}
		s.softs = append(later, s.softs...)
	}
	return nil
}

// target returns the node that a soft link leads to, as far as it is known.
func (s *scan) target(x soft) *node {
	at := x.parent
	if strings.HasPrefix(x.soft, "/") {
		at = s.root
	}
	for name := range strings.SplitSeq(x.soft, "/") {
		if name == "" || name == "." {
			continue
		}
		if at = at.children[name]; at == nil {
			return nil
		}
	}
	return at
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// withPath adds a path to an error about the content of the file, whose text begins with the scheme.
func withPath(path string, err error) error {
	if err == nil || !formats.IsKnown(err) {
		return err
	}
	return &pathError{path, err}
}

// pathError is an error about the object at a path.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string {
	text := e.err.Error()
	var inner *pathError
	if errors.As(e.err, &inner) {
		return text
	}
	const mark = "hdf5: "
	if i := strings.Index(text, mark); i >= 0 {
		return text[:i+len(mark)] + orRoot(e.path) + ": " + text[i+len(mark):]
	}
	return orRoot(e.path) + ": " + text
}

func (e *pathError) Unwrap() error { return e.err }
