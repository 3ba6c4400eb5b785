package icechunk

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/msgpack"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// written is a snapshot that is being written.
type written struct {
	formats.Version
	w      *Writer
	id     objectID
	parent *snapshot         // nil for the first
	meta   map[string]string // of the snapshot

	nodes                                                                      map[string]*writtenNode // by path
	edits                                                                      map[*writtenNode][]edit
	newGroups, newArrays, goneGroups, goneArrays, changedGroups, changedArrays [][]byte // ids
}

// writtenNode is a node of a snapshot that is being written.
type writtenNode struct {
	id       nodeID
	path     string
	document []byte
	array    *arrayDocument // nil of a group
	keys     chunkKeys      // where chunks come from
	covers   []block
}

// block is a manifest of an array.
type block struct {
	manifest objectID
	from, to []uint32
}

// edit is a chunk that is written or deleted.
type edit struct {
	coords  []uint32
	ref     refs.Reference
	deleted bool
}

// begin makes a snapshot that is its parent.
func (w *Writer) begin(ctx context.Context, v formats.Version) (*written, error) {
	s := &written{Version: v, w: w, id: idOf("snapshot", v.ID), nodes: map[string]*writtenNode{}, edits: map[*writtenNode][]edit{}}
	s.meta = map[string]string{}
	maps.Copy(s.meta, v.Properties)
	for name, value := range map[string]string{commitName: v.ID, authorName: v.Author} {
		if value != "" {
			s.meta[name] = value
		}
	}
	parent := initialID
	if len(v.Parents) > 0 {
		var ok bool
		if parent, ok = parseID(v.Parents[0]); !ok {
			return nil, fmt.Errorf("%w: %q", formats.ErrNoVersion, v.Parents[0])
		}
		if len(v.Parents) > 1 {
			s.meta[mergedName] = strings.Join(v.Parents[1:], ",")
		}
	}
	var err error
	if s.parent, err = w.repo.snapshot(ctx, parent); err != nil {
		return nil, err
	}
	for i := range s.parent.nodes {
		n := &s.parent.nodes[i]
		x := &writtenNode{id: n.id, path: n.path, document: n.document, keys: n.keys}
		if n.array {
			if keys, ok := w.spelled[n.id]; ok {
				x.keys = keys
			}
			if x.array, _, err = parseDocument(n.dir()+document, n.document); err != nil {
				return nil, err
			}
		}
		for _, c := range n.covers {
			b := block{manifest: c.manifest}
			for d := range c.extents.n {
				b.from, b.to = append(b.from, c.extents.u32(2*d)), append(b.to, c.extents.u32(2*d+1))
			}
			x.covers = append(x.covers, b)
		}
		s.nodes[n.path] = x
	}
	return s, nil
}

// take sorts changes into documents and chunks.
func (s *written) take(changes iter.Seq2[formats.Change, error]) error {
	before := maps.Clone(s.nodes)
	gone := map[string]bool{}
	var chunks []formats.Change
	for c, err := range changes {
		if err != nil {
			return err
		}
		if !isDocument(c.Key) {
			chunks = append(chunks, c)
			continue
		}
		path := strings.TrimSuffix(strings.TrimSuffix(c.Key, document), "/")
		if c.Deleted {
			gone[path] = true
			continue
		}
		if !c.Inline() {
			return formats.Unsupported("%s: a document that is not here", c.Key)
		}
		if _, err := nodePath([]byte("/" + path)); err != nil {
			return formats.Unsupported("%s: Icechunk has no such path", c.Key)
		}
		if err := s.document(path, c); err != nil {
			return err
		}
	}
	for path := range gone {
		if n := s.nodes[path]; n != nil && n == before[path] {
			delete(s.nodes, path)
		}
	}
	for _, n := range s.nodes {
		for path := n.path; path != ""; {
			path = above(path)
			if m := s.nodes[path]; m != nil && m.array != nil {
				return formats.Unsupported("%q lies below the array %q", n.path, path)
			}
		}
	}
	s.differences(before)
	for _, c := range chunks {
		if err := s.chunk(c, before); err != nil {
			return err
		}
	}
	return nil
}

func isDocument(key string) bool { return key == document || strings.HasSuffix(key, "/"+document) }

// document sets a document.
func (s *written) document(path string, c formats.Change) error {
	array, b, err := parseDocument(c.Key, c.Data)
	if err != nil {
		return err
	}
	n := &writtenNode{path: path, document: b, keys: keysOf(c.Data)}
	if array.NodeType == "array" {
		n.array = array
	}
	if old := s.nodes[path]; old != nil && (old.array == nil) == (n.array == nil) && (n.array == nil || len(old.array.Shape) == len(array.Shape)) {
		n.id, n.covers = old.id, old.covers
	} else {
		id := idOf("node", s.ID, path)
		copy(n.id[:], id[:])
	}
	s.nodes[path], s.w.spelled[n.id] = n, n.keys
	return nil
}

// differences notes which nodes are new, gone or other than before.
func (s *written) differences(before map[string]*writtenNode) {
	note := func(n *writtenNode, groups, arrays *[][]byte) {
		if n.array != nil {
			groups = arrays
		}
		*groups = append(*groups, slices.Clone(n.id[:]))
	}
	for path, n := range s.nodes {
		switch old := before[path]; {
		case old == nil || old.id != n.id:
			note(n, &s.newGroups, &s.newArrays)
		case !bytes.Equal(old.document, n.document):
			note(n, &s.changedGroups, &s.changedArrays)
		}
	}
	for path, old := range before {
		if n := s.nodes[path]; n == nil || n.id != old.id {
			note(old, &s.goneGroups, &s.goneArrays)
		}
	}
	for _, ids := range [][][]byte{s.newGroups, s.newArrays, s.goneGroups, s.goneArrays, s.changedGroups, s.changedArrays} {
		slices.SortFunc(ids, bytes.Compare)
	}
}

// chunk finds the array of a chunk.
func (s *written) chunk(c formats.Change, before map[string]*writtenNode) error {
	for path := c.Key; path != ""; {
		path = above(path)
		n := s.nodes[path]
		if n == nil || n.array == nil {
			if old := before[path]; old != nil && old.array != nil && c.Deleted {
				return nil // with its array
			}
			continue
		}
		rest := strings.TrimPrefix(c.Key[len(path):], "/")
		coords, ok := n.keys.parse(rest)
		if ok && n.keys.v2 && len(n.array.Shape) == 0 && slices.Equal(coords, []uint32{0}) {
			coords = []uint32{}
		}
		if !ok || len(coords) != len(n.array.Shape) {
			break
		}
		if !c.Deleted && !c.Inline() && c.Whole() {
			return formats.Unsupported("%s: a virtual chunk that is a whole file", c.Key)
		}
		s.edits[n] = append(s.edits[n], edit{coords, c.Reference, c.Deleted})
		return nil
	}
	if c.Deleted {
		return nil // such as a key of another format
	}
	return formats.Unsupported("key %q: a repository of Icechunk holds Zarr v3 and no other keys", c.Key)
}

// arrays writes the manifests of arrays whose chunks changed.
func (s *written) arrays(ctx context.Context) error {
	for n, edits := range s.edits {
		slices.SortFunc(edits, func(a, b edit) int { return slices.Compare(a.coords, b.coords) })
		if err := s.array(ctx, n, edits); err != nil {
			return fmt.Errorf("array %q: %w", n.path, err)
		}
	}
	return nil
}

// blockChunks is about how many chunks a manifest has.
const blockChunks = 4096

// blockOf chooses how the manifests of an array are cut: whole last dimensions.
func (w *Writer) blockOf(n *writtenNode) []uint32 {
	if b, ok := w.blocks[n.id]; ok {
		return b
	}
	counts := n.array.counts()
	b := make([]uint32, len(counts))
	left := uint32(blockChunks)
	for d := len(b) - 1; d >= 0; d-- {
		b[d] = max(1, left)
		if d > 0 {
			b[d] = max(1, min(counts[d], left))
			left /= b[d]
		}
	}
	w.blocks[n.id] = b
	return b
}

// array writes the manifests that edits, which are sorted, are in.
func (s *written) array(ctx context.Context, n *writtenNode, edits []edit) error {
	size := s.w.blockOf(n)
	start := func(coords []uint32) string {
		var b []byte
		for d, x := range coords {
			b = binary.BigEndian.AppendUint32(b, x-x%size[d])
		}
		return string(b)
	}
	touched := map[string][]edit{}
	for _, e := range edits {
		at := start(e.coords)
		touched[at] = append(touched[at], e)
	}
	covers := make([]block, 0, len(n.covers)+len(touched))
	for _, b := range n.covers {
		at := start(b.from)
		edits, ok := touched[at]
		if !ok {
			covers = append(covers, b)
			continue
		}
		delete(touched, at)
		old, err := s.w.repo.manifest(ctx, b.manifest)
		if err != nil {
			return err
		}
		if covers, err = s.block(ctx, n, at, old, edits, covers); err != nil {
			return err
		}
	}
	for _, at := range slices.Sorted(maps.Keys(touched)) {
		var err error
		if covers, err = s.block(ctx, n, at, nil, touched[at], covers); err != nil {
			return err
		}
	}
	slices.SortFunc(covers, func(a, b block) int { return slices.Compare(a.from, b.from) })
	n.covers = covers
	return nil
}

// block writes one manifest: its former contents with edits. One without chunks is
// left out.
func (s *written) block(ctx context.Context, n *writtenNode, at string, old *manifest, edits []edit, covers []block) ([]block, error) {
	var list []edit
	if old != nil {
		err := old.each(n.id, func(coords []uint32, t table) error {
			for len(edits) > 0 && slices.Compare(edits[0].coords, coords) < 0 {
				list, edits = append(list, edits[0]), edits[1:]
			}
			if len(edits) > 0 && slices.Equal(edits[0].coords, coords) {
				return nil
			}
			r, err := old.reference(t, nil)
			list = append(list, edit{coords: slices.Clone(coords), ref: r})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	list = slices.DeleteFunc(append(list, edits...), func(e edit) bool { return e.deleted })
	if len(list) == 0 {
		return covers, nil
	}
	b := block{manifest: idOf("manifest", s.ID, string(n.id[:]), at), from: slices.Clone(list[0].coords), to: slices.Clone(list[0].coords)}
	for _, e := range list {
		for d, x := range e.coords {
			b.from[d], b.to[d] = min(b.from[d], x), max(b.to[d], x)
		}
		if !e.ref.Inline() && strings.Contains(e.ref.URL, "://") {
			s.w.places.add(spelled(e.ref.URL))
		}
	}
	for d := range b.to {
		b.to[d]++
	}
	file := manifestFile(b.manifest, n.id, list)
	s.w.infos[b.manifest] = manifestInfo{uint64(len(file)), uint32(len(list))}
	return append(covers, b), s.w.put(ctx, manifestKey(b.manifest), file)
}

// log is the transaction log of the snapshot.
func (s *written) log() []byte {
	f := newBuilder()
	o := offsetSlot()
	p := f.table(0, fixedSlot(s.id[:]), o, o, o, o, o, o, o)
	for i, ids := range [][][]byte{s.newGroups, s.newArrays, s.goneGroups, s.goneArrays, s.changedArrays, s.changedGroups} {
		f.vector(p[1+i], len(ids), 4, slices.Concat(ids...))
	}
	nodes := slices.SortedFunc(maps.Keys(s.edits), func(a, b *writtenNode) int { return bytes.Compare(a.id[:], b.id[:]) })
	at := f.offsets(p[7], len(nodes))
	for i, n := range nodes {
		t := f.table(at+4*i, fixedSlot(n.id[:]), o)
		edits := s.edits[n]
		chunk := f.offsets(t[1], len(edits))
		for j, e := range edits {
			q := f.table(chunk+4*j, o)
			f.vector(q[0], len(e.coords), 4, u32s(e.coords))
		}
	}
	return f.file(kindLog)
}

func u32s(list []uint32) (b []byte) {
	for _, x := range list {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// file is the file of the snapshot.
func (s *written) file(infos map[objectID]manifestInfo) []byte {
	f := newBuilder()
	o := offsetSlot()
	parent := slot{}
	if s.parent != nil {
		parent = fixedSlot(s.parent.id[:])
	}
	p := f.table(0, fixedSlot(s.id[:]), parent, o, u64Slot(uint64(s.Time.UnixMicro())), o, o, o)
	f.text(p[4], s.Message)
	names := slices.Sorted(maps.Keys(s.meta))
	at := f.offsets(p[5], len(names))
	for i, name := range names {
		q := f.table(at+4*i, o, o)
		f.text(q[0], name)
		value := msgpack.AppendText(nil, s.meta[name])
		f.vector(q[1], len(value), 1, value)
	}
	used := map[objectID]bool{}
	paths := slices.Sorted(maps.Keys(s.nodes))
	at = f.offsets(p[2], len(paths))
	for i, path := range paths {
		n := s.nodes[path]
		is := byte(dataGroup)
		if n.array != nil {
			is = dataArray
		}
		q := f.table(at+4*i, fixedSlot(n.id[:]), o, o, u8Slot(is), o)
		f.text(q[1], "/"+path)
		f.vector(q[2], len(n.document), 1, n.document)
		if n.array == nil {
			f.table(q[4])
			continue
		}
		for _, c := range n.covers {
			used[c.manifest] = true
		}
		f.arrayNode(q[4], n)
	}
	list := slices.SortedFunc(maps.Keys(used), func(a, b objectID) int { return bytes.Compare(a[:], b[:]) })
	var b []byte
	for _, id := range list {
		b = append(append(b, id[:]...), 0, 0, 0, 0)
		b = binary.LittleEndian.AppendUint64(b, infos[id].size)
		b = binary.LittleEndian.AppendUint64(b, uint64(infos[id].count))
	}
	f.vector(p[6], len(list), 8, b)
	return f.file(kindSnapshot)
}

// arrayNode writes a snapshot's record of an array.
func (f *builder) arrayNode(at int, n *writtenNode) {
	o := offsetSlot()
	fields := []slot{o, {}, o}
	if n.array.Names != nil {
		fields[1] = o
	}
	p := f.table(at, fields...)
	var shape []byte
	for d, x := range n.array.Shape {
		shape = binary.LittleEndian.AppendUint64(shape, x)
		shape = binary.LittleEndian.AppendUint64(shape, n.array.Grid.Configuration.ChunkShape[d])
	}
	f.vector(p[0], len(n.array.Shape), 8, shape)
	if n.array.Names != nil {
		at := f.offsets(p[1], len(n.array.Names))
		for i, name := range n.array.Names {
			if name == nil {
				f.table(at + 4*i)
				continue
			}
			q := f.table(at+4*i, o)
			f.text(q[0], *name)
		}
	}
	list := f.offsets(p[2], len(n.covers))
	for i, c := range n.covers {
		q := f.table(list+4*i, fixedSlot(c.manifest[:]), o)
		var extents []byte
		for d := range c.from {
			extents = binary.LittleEndian.AppendUint32(extents, c.from[d])
			extents = binary.LittleEndian.AppendUint32(extents, c.to[d])
		}
		f.vector(q[1], len(c.from), 4, extents)
	}
}

// manifestFile is a manifest of chunks of one array, which are sorted.
func manifestFile(id objectID, node nodeID, list []edit) []byte {
	f := newBuilder()
	o := offsetSlot()
	p := f.table(0, fixedSlot(id[:]), o)
	at := f.offsets(p[1], 1)
	p = f.table(at, fixedSlot(node[:]), o)
	at = f.offsets(p[1], len(list))
	for i, e := range list {
		fields := []slot{o}
		virtual, etag := "", ""
		switch chunk, native := strings.CutPrefix(e.ref.URL, "chunks/"); {
		case e.ref.Inline():
			fields = append(fields, o)
		case native:
			id, _ := parseID(chunk)
			fields = append(fields, slot{}, u64Slot(uint64(e.ref.Offset)), u64Slot(uint64(e.ref.Length)), fixedSlot(id[:]))
		default:
			virtual = spelled(e.ref.URL)
			fields = append(fields, slot{}, u64Slot(uint64(e.ref.Offset)), u64Slot(uint64(e.ref.Length)), slot{}, o)
			var seconds uint32
			switch etag, seconds = checksum(e.ref.Condition); {
			case etag != "":
				fields = append(fields, o)
			case seconds > 0:
				fields = append(fields, slot{}, u32Slot(seconds))
			}
		}
		q := f.table(at+4*i, fields...)
		f.vector(q[refIndex], len(e.coords), 4, u32s(e.coords))
		switch {
		case virtual != "":
			f.text(q[refLocation], escapedLocation(virtual))
			if etag != "" {
				f.text(q[refETag], etag)
			}
		case e.ref.Inline():
			f.vector(q[refInline], len(e.ref.Data), 1, e.ref.Data)
		}
	}
	return f.file(kindManifest)
}

// checksum is a condition as a virtual chunk states it: its entity tag, or its seconds
// since 1970, at least 1; "" and 0 without one, and for a time that Icechunk cannot say.
func checksum(condition string) (etag string, seconds uint32) {
	etag, since, ok := kv.ParseCondition(condition)
	if ok && etag == "" && since.Unix() <= math.MaxUint32 {
		seconds = uint32(max(since.Unix(), 1))
	}
	return etag, seconds
}
