package depot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"sort"
)

// The bytes of a bundle are those of docs/format-remote.md.
const (
	bundleMagic = "zarrdb bundle 1\n"
	footerMagic = "zarrdb bundle e\n"
	headerSize  = 16
	footerSize  = 64
	countsSize  = 24

	pageSize   = 32
	commitSize = 36
	extentSize = 44
	moveSize   = 12

	// maxItem bounds a page, a commit record and a move.
	maxItem = 16 << 20
	// maxOffset bounds offsets in packs and segments.
	maxOffset = 1 << 60

	flagBare = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Extent is a range of a pack and its place in a segment.
type Extent struct {
	Pack     [16]byte
	From, To uint64
	Segment  Name
	Offset   uint64
}

func (e *Extent) before(f *Extent) int {
	return cmp.Or(bytes.Compare(e.Pack[:], f.Pack[:]), cmp.Compare(e.From, f.From))
}

// index is the index of a bundle: its bytes, which were checked.
type index struct {
	pages, commits, segments, extents, moves []byte
	raw                                      []byte
	whole                                    *Bundle // the bundle, if it has at most smallWhole
	bad                                      error   // why there is no index, which is empty then
}

// parseIndex reads the index of a bundle whose contents end at byte end.
func parseIndex(raw []byte, end uint64) (*index, error) {
	if len(raw) < countsSize {
		return nil, corrupt("index of %d bytes", len(raw))
	}
	x, rest := &index{raw: raw}, raw[countsSize:]
	for i, t := range []struct {
		size uint64
		to   *[]byte
	}{{pageSize, &x.pages}, {commitSize, &x.commits}, {nameSize, &x.segments}, {extentSize, &x.extents}, {moveSize, &x.moves}} {
		n := t.size * uint64(binary.LittleEndian.Uint32(raw[4*i:]))
		if n > uint64(len(rest)) {
			return nil, corrupt("index of %d bytes is too short", len(raw))
		}
		*t.to, rest = rest[:n], rest[n:]
	}
	if len(rest) != 0 || binary.LittleEndian.Uint32(raw[20:]) != 0 {
		return nil, corrupt("index of %d bytes is too long", len(raw))
	}
	sum := uint64(headerSize)
	for _, t := range []struct {
		b          []byte
		size, name int
	}{{x.pages, pageSize, 20}, {x.commits, commitSize, 20}, {x.moves, moveSize, 0}} {
		for i := 0; i < len(t.b); i += t.size {
			if t.name > 0 && i > 0 && bytes.Compare(t.b[i-t.size:][:20], t.b[i:][:20]) >= 0 {
				return nil, corrupt("names of the index are out of order")
			}
			s := spanAt(t.b[i+t.name:])
			if s.n > maxItem || s.off < headerSize || s.off > end || s.n > end-s.off {
				return nil, corrupt("%d bytes at %d of %d", s.n, s.off, end)
			}
			sum += s.n
		}
	}
	if sum != end {
		return nil, corrupt("the index lists %d of %d bytes", sum, end)
	}
	var last Extent
	for i := range len(x.extents) / extentSize {
		if int(binary.LittleEndian.Uint32(x.extents[i*extentSize+32:])) >= len(x.segments)/nameSize {
			return nil, corrupt("extent %d is in no segment", i)
		}
		e := x.extent(i)
		if e.From >= e.To || e.To > maxOffset || e.Offset > maxOffset || i > 0 && (last.before(&e) >= 0 || last.Pack == e.Pack && last.To > e.From) {
			return nil, corrupt("extent %d is out of place", i)
		}
		last = e
	}
	return x, nil
}

// span is a part of an object.
type span struct{ off, n uint64 }

func spanAt(b []byte) span {
	return span{binary.LittleEndian.Uint64(b), uint64(binary.LittleEndian.Uint32(b[8:]))}
}

// find looks up a name in a table.
func find(table []byte, size int, id *ID) (entry []byte, ok bool) {
	i := sort.Search(len(table)/size, func(i int) bool { return bytes.Compare(table[i*size:][:20], id[:]) >= 0 })
	if i*size == len(table) || ID(table[i*size:][:20]) != *id {
		return nil, false
	}
	return table[i*size:][:size], true
}

func (x *index) extent(i int) Extent {
	b := x.extents[i*extentSize:]
	segment := x.segments[nameSize*int(binary.LittleEndian.Uint32(b[32:])):]
	return Extent{[16]byte(b), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:]), decodeName(segment), binary.LittleEndian.Uint64(b[36:])}
}

func (x *index) allExtents() []Extent {
	out := make([]Extent, len(x.extents)/extentSize)
	for i := range out {
		out[i] = x.extent(i)
	}
	return out
}

// cover finds the extent that has a range.
func (x *index) cover(pack [16]byte, from, to uint64) (Extent, bool) {
	at := Extent{Pack: pack, From: from}
	i := sort.Search(len(x.extents)/extentSize, func(i int) bool { e := x.extent(i); return e.before(&at) > 0 }) - 1
	if i < 0 {
		return at, false
	}
	e := x.extent(i)
	return e, e.Pack == pack && from >= e.From && to <= e.To && from < to
}

// within returns the extents of a range, cut to it.
func (x *index) within(pack [16]byte, from, to uint64) (out []Extent) {
	at := Extent{Pack: pack, From: from}
	n := len(x.extents) / extentSize
	i := max(0, sort.Search(n, func(i int) bool { e := x.extent(i); return e.before(&at) > 0 })-1)
	for ; i < n; i++ {
		e := x.extent(i)
		if c := bytes.Compare(e.Pack[:], pack[:]); c > 0 || c == 0 && e.From >= to {
			break
		} else if c < 0 || e.To <= from {
			continue
		}
		if e.From < from {
			e.Offset, e.From = e.Offset+from-e.From, from
		}
		e.To = min(e.To, to)
		out = append(out, e)
	}
	return out
}

// Bundle is a whole bundle.
type Bundle struct {
	x *index
	b []byte
}

// ParseBundle reads the bytes of a bundle. The names of pages and commits are compared when
// they are listed.
func ParseBundle(b []byte) (*Bundle, error) {
	if len(b) < headerSize+countsSize+footerSize || len(b) > maxBundle || string(b[:headerSize]) != bundleMagic {
		return nil, corrupt("not a bundle")
	}
	foot := b[len(b)-footerSize:]
	at, n := binary.LittleEndian.Uint64(foot[16:]), binary.LittleEndian.Uint64(foot[24:])
	if string(foot[:16]) != footerMagic || crc32.Checksum(foot[:60], castagnoli) != binary.LittleEndian.Uint32(foot[60:]) ||
		at < headerSize || at > uint64(len(b)-footerSize) || n != uint64(len(b)-footerSize)-at || binary.LittleEndian.Uint64(foot[32:]) > at {
		return nil, corrupt("not the footer of a bundle")
	}
	raw := b[at : at+n]
	if NameOf(raw) != ID(foot[40:60]) {
		return nil, corrupt("the index of a bundle does not have its name")
	}
	x, err := parseIndex(raw, at)
	if err != nil {
		return nil, err
	}
	return &Bundle{x, b}, nil
}

// is compares the size, the index and its name with the entry of a manifest.
func (b *Bundle) is(info *BundleInfo) error {
	if uint64(len(b.b)) != info.Size || uint64(len(b.b)-footerSize-len(b.x.raw)) != info.Index || NameOf(b.x.raw) != info.Sum {
		return corrupt("bundle %v is not the one that the manifest lists", info.Name)
	}
	return nil
}

// index returns the index, to be kept: with the whole bundle if that is small.
func (b *Bundle) index() (*index, error) {
	if len(b.b) <= smallWhole {
		b.x.whole = b
		return b.x, nil
	}
	return parseIndex(slices.Clone(b.x.raw), uint64(len(b.b)-footerSize-len(b.x.raw)))
}

// items yields the entries of a table and their bytes, in the order of their places.
func (b *Bundle) items(table []byte, size int) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		order := make([]int, len(table)/size)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int {
			return cmp.Compare(spanAt(table[i*size+20:]).off, spanAt(table[j*size+20:]).off)
		})
		for _, i := range order {
			s := spanAt(table[i*size+20:])
			if !yield(i, b.b[s.off:s.off+s.n:s.off+s.n]) {
				return
			}
		}
	}
}

// Pages yields the pages in their order. The bytes belong to the bundle. The error is kv.ErrCorrupt
// for a page that does not have its name.
func (b *Bundle) Pages() iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		hot := binary.LittleEndian.Uint64(b.b[len(b.b)-footerSize+32:])
		for i, data := range b.items(b.x.pages, pageSize) {
			entry := b.x.pages[i*pageSize:]
			if !yield(Page{data, spanAt(entry[20:]).off < hot}, named(ID(entry[:20]), data)) {
				return
			}
		}
	}
}

// Commits is [Bundle.Pages] for commit records.
func (b *Bundle) Commits() iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		for i, data := range b.items(b.x.commits, commitSize) {
			entry := b.x.commits[i*commitSize:]
			bare := binary.LittleEndian.Uint32(entry[32:])&flagBare != 0
			if !yield(Commit{data, bare}, named(ID(entry[:20]), data)) {
				return
			}
		}
	}
}

// Extents returns the ranges of packs, ascending.
func (b *Bundle) Extents() []Extent { return b.x.allExtents() }

// Moves returns the moves of refs, newest first. The bytes belong to the bundle.
func (b *Bundle) Moves() [][]byte {
	var out [][]byte
	for i := 0; i < len(b.x.moves); i += moveSize {
		s := spanAt(b.x.moves[i:])
		out = append(out, b.b[s.off:s.off+s.n:s.off+s.n])
	}
	return out
}

// named compares bytes with their name.
func named(id ID, data []byte) error {
	if got := NameOf(data); got != id {
		return corrupt("%v has bytes of the name %v", id, got)
	}
	return nil
}

// Page is a page of a tree.
type Page struct {
	Data []byte
	// Hot pages are those that most readers need: the upper ones of the heads. They come first.
	Hot bool
}

// Commit is a commit record.
type Commit struct {
	Record []byte
	// Bare means that the version itself is not there. The record is.
	Bare bool
}

// builder makes a bundle.
type builder struct {
	b       []byte
	hot     int
	pages   map[ID]span
	commits map[ID]commitSpan
	extents []Extent // ascending, apart
	moves   []span
}

type commitSpan struct {
	span
	bare bool
}

func newBuilder() *builder {
	return &builder{b: []byte(bundleMagic), pages: map[ID]span{}, commits: map[ID]commitSpan{}}
}

func (w *builder) empty() bool {
	return len(w.pages)+len(w.commits)+len(w.extents)+len(w.moves) == 0
}

// size is the length of the finished bundle.
func (w *builder) size() int {
	return len(w.b) + countsSize + pageSize*len(w.pages) + commitSize*len(w.commits) + (extentSize+nameSize)*len(w.extents) + moveSize*len(w.moves) + footerSize
}

func (w *builder) put(data []byte) (span, error) {
	if len(data) > maxItem {
		return span{}, fmt.Errorf("depot: %d bytes, a page, commit or move has at most %d", len(data), maxItem)
	}
	s := span{uint64(len(w.b)), uint64(len(data))}
	w.b = append(w.b, data...)
	return s, nil
}

func (w *builder) addPage(p Page) (err error) {
	id := NameOf(p.Data)
	if _, ok := w.pages[id]; ok {
		return nil
	}
	contiguous := p.Hot && max(w.hot, headerSize) == len(w.b)
	if w.pages[id], err = w.put(p.Data); contiguous {
		w.hot = len(w.b)
	}
	return err
}

// addCommit adds a record. One with its version takes the place of a bare one.
func (w *builder) addCommit(c Commit) error {
	id := NameOf(c.Record)
	s, ok := w.commits[id]
	if ok {
		w.commits[id] = commitSpan{s.span, s.bare && c.Bare}
		return nil
	}
	at, err := w.put(c.Record)
	w.commits[id] = commitSpan{at, c.Bare}
	return err
}

// addMove adds a move that is older than those before.
func (w *builder) addMove(data []byte) error {
	s, err := w.put(data)
	w.moves = append(w.moves, s)
	return err
}

// addBundles adds the contents of bundles that are older than what was added before: all pages, then all commits, so that each
// lie together. With hot, pages that are hot in the first bundle are hot in the new one.
func (w *builder) addBundles(list []*Bundle, hot bool) error {
	for i, b := range list {
		if err := each(b.Pages(), func(p Page) error { return w.addPage(Page{p.Data, p.Hot && hot && i == 0}) }); err != nil {
			return err
		}
	}
	for _, b := range list {
		if err := each(b.Commits(), w.addCommit); err != nil {
			return err
		}
	}
	for _, b := range list {
		for _, m := range b.Moves() {
			if err := w.addMove(m); err != nil {
				return err
			}
		}
		w.extents = overlay(w.extents, b.Extents())
	}
	return nil
}

// check compares pages and commits with their names.
func (b *Bundle) check() error {
	if err := each(b.Pages(), func(Page) error { return nil }); err != nil {
		return err
	}
	return each(b.Commits(), func(Commit) error { return nil })
}

// each calls add for all that seq yields, until an error.
func each[T any](seq iter.Seq2[T, error], add func(T) error) error {
	if seq == nil {
		return nil
	}
	for v, err := range seq {
		if err == nil {
			err = add(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish returns the bundle, and its entry for the manifest without the name.
func (w *builder) finish() (*Bundle, BundleInfo, error) {
	at := uint64(len(w.b))
	info := BundleInfo{Index: at, Hot: uint64(w.hot)}
	var segments []Name
	numbers := map[Name]uint32{}
	for _, e := range w.extents {
		if _, ok := numbers[e.Segment]; !ok {
			numbers[e.Segment] = uint32(len(segments))
			segments = append(segments, e.Segment)
		}
	}
	le := binary.LittleEndian
	b := w.b
	for _, n := range []int{len(w.pages), len(w.commits), len(segments), len(w.extents), len(w.moves), 0} {
		b = le.AppendUint32(b, uint32(n))
	}
	for _, id := range slices.SortedFunc(maps.Keys(w.pages), compareIDs) {
		b = w.pages[id].append(append(b, id[:]...))
	}
	for _, id := range slices.SortedFunc(maps.Keys(w.commits), compareIDs) {
		c := w.commits[id]
		b = c.append(append(b, id[:]...))
		flags := uint32(0)
		if c.bare {
			flags = flagBare
		}
		b = le.AppendUint32(b, flags)
	}
	for _, n := range segments {
		b = n.append(b)
	}
	for _, e := range w.extents {
		b = le.AppendUint64(le.AppendUint64(append(b, e.Pack[:]...), e.From), e.To)
		b = le.AppendUint64(le.AppendUint32(b, numbers[e.Segment]), e.Offset)
	}
	for _, s := range w.moves {
		b = s.append(b)
	}
	info.Sum = NameOf(b[at:])
	n := uint64(len(b)) - at
	foot := append(make([]byte, 0, footerSize), footerMagic...)
	foot = le.AppendUint64(le.AppendUint64(le.AppendUint64(foot, at), n), info.Hot)
	foot = append(foot, info.Sum[:]...)
	b = append(b, le.AppendUint32(foot, crc32.Checksum(foot, castagnoli))...)
	info.Size = uint64(len(b))
	out, err := ParseBundle(b) // a bundle that cannot be read is not written
	return out, info, err
}

func (s span) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, s.off), uint32(s.n))
}

func compareIDs(a, b ID) int { return bytes.Compare(a[:], b[:]) }

// overlay returns the ranges of newer and those of older that newer does not have. Both lists
// ascend, and the ranges of each lie apart.
func overlay(newer, older []Extent) []Extent {
	out := slices.Clone(newer)
	i := 0
	for _, e := range older {
		for i < len(newer) && (bytes.Compare(newer[i].Pack[:], e.Pack[:]) < 0 || newer[i].Pack == e.Pack && newer[i].To <= e.From) {
			i++
		}
		for j := i; e.From < e.To; j++ {
			if j == len(newer) || newer[j].Pack != e.Pack || newer[j].From >= e.To {
				out = append(out, e)
				break
			}
			if piece := e; piece.From < newer[j].From {
				piece.To = newer[j].From
				out = append(out, piece)
			}
			if newer[j].To >= e.To {
				break
			}
			e.Offset += newer[j].To - e.From
			e.From = newer[j].To
		}
	}
	return ascending(out)
}
