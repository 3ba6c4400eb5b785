package namespace

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// A listing yields keys in byte order. Directories have that order already,
// with the keys below a sub-directory where its entry is. Chunk maps have not
// (listmap.go). So a listing walks down the directories and merges the walk
// with the chunk maps of the directories that it is in.

// List yields every key that begins with prefix and comes after another key, in
// byte order. after "" leaves out nothing. Memory is bounded.
func (s *Space) List(ctx context.Context, root tree.Root, prefix, after string) iter.Seq2[string, error] {
	return s.listing(ctx, root, boundsOf(prefix, after), noFlat)
}

// ListDir yields the direct children of prefix, which is empty or ends in a
// slash, ordered by name. It does not read the directories below the children.
func (s *Space) ListDir(ctx context.Context, root tree.Root, prefix string) iter.Seq2[kv.DirEntry, error] {
	return kv.ListDir(ctx, flatLister{s, root, prefix}, prefix)
}

// flatLister lists one directory as a view whose keys are the names of the
// children; all that is below a child is one key, its name with a slash.
type flatLister struct {
	s    *Space
	root tree.Root
	dir  string
}

var _ kv.Lister = flatLister{}

func (l flatLister) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return l.s.listing(ctx, l.root, boundsOf(o.Prefix, o.After), len(l.dir))
}

// listBounds select keys.
type listBounds struct {
	prefix string // keys begin with it
	low    string // and are not less than this, which is not less than prefix
}

func boundsOf(prefix, after string) listBounds {
	if after == "" || after < prefix {
		return listBounds{prefix, prefix}
	}
	return listBounds{prefix, after + "\x00"}
}

// below returns the bounds of what follows dir in keys that begin with it; ok
// is false if no such key is wanted.
func (b listBounds) below(dir string) (r listBounds, ok bool) {
	switch {
	case strings.HasPrefix(b.prefix, dir):
		r.prefix = b.prefix[len(dir):]
	case !strings.HasPrefix(dir, b.prefix):
		return r, false
	}
	r.low, ok = lowBelow(b.low, dir)
	return r, ok
}

// lowBelow returns the bound low for what follows dir in keys that begin with
// it; ok is false if all these keys are less.
func lowBelow(low, dir string) (r string, ok bool) {
	if strings.HasPrefix(low, dir) {
		return low[len(dir):], true
	}
	return "", low < dir
}

// entries returns the span of a directory's own entries that are wanted.
func (b *listBounds) entries() (span tree.Span) {
	if b.low != "" {
		span.From = []byte(firstName(b.low))
	}
	if b.prefix != "" {
		span.To = keyAfter([]byte(firstName(b.prefix)))
	}
	return span
}

// firstName cuts a relative key behind its first slash.
func firstName(rel string) string {
	if i := strings.IndexByte(rel, '/'); i >= 0 {
		return rel[:i+1]
	}
	return rel
}

// noFlat says that no directory is listed flat.
const noFlat = -1

// listing runs a lister. flat is the length of the directory whose children are
// not entered, or noFlat.
func (s *Space) listing(ctx context.Context, root tree.Root, b listBounds, flat int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		l := lister{s: s, ctx: ctx, bounds: b, flat: flat}
		err := l.enter("", root)
		for err == nil {
			var key string
			var ok bool
			if key, ok, err = l.next(); err == nil && (!ok || !yield(key, nil)) {
				return
			}
		}
		yield("", err)
	}
}

// lister merges the directories that it is in with their chunk maps.
type lister struct {
	s      *Space
	ctx    context.Context
	bounds listBounds
	flat   int
	dirs   []*dirCursor   // from the root to where it is
	chunks []*chunkLister // of these directories, none at its end
}

// dirCursor is a directory with the entries not yet passed.
type dirCursor struct {
	path string
	cur  cursor[tree.Entry]
	key  string // of the first of them, full; valid if ok
	ok   bool
}

// enter adds a directory.
func (l *lister) enter(path string, root tree.Root) error {
	b, ok := l.bounds.below(path)
	if !ok || root.Entries == 0 {
		return nil
	}
	if err := CheckPath(l.ctx, path); err != nil {
		return err
	}
	info, err := l.s.readDir(l.ctx, root)
	if err != nil {
		return err
	}
	for i := range info.forms {
		c := &chunkLister{s: l.s, ctx: l.ctx, dir: path, form: &info.forms[i], bounds: b}
		if err := c.seek(b.low); err != nil {
			return err
		}
		if c.more() {
			l.chunks = append(l.chunks, c)
		}
	}
	pace := l.s.Tree.Pace()
	l.dirs = append(l.dirs, &dirCursor{path: path, cur: cursor[tree.Entry]{
		read: func(span tree.Span) iter.Seq2[tree.Entry, error] {
			entries := l.s.Tree.Scan(l.ctx, root, span)
			if l.flat != len(path) || pace.First > 1 { // what is far is mostly opened next
				entries = ahead(l.ctx, l.s.Tree, entries, subRoot)
			}
			return entries
		},
		key:  func(e tree.Entry) []byte { return e.Key },
		span: b.entries(),
		pace: pace,
	}})
	return nil
}

// head loads the next entry of the directories; nil at the end.
func (l *lister) head() (*dirCursor, error) {
	for len(l.dirs) > 0 {
		d := l.dirs[len(l.dirs)-1]
		for !d.ok {
			e, err := d.cur.peek(max(l.s.Limits.Read, d.cur.pace.Most))
			if err != nil {
				return nil, err
			}
			if e == nil {
				break
			}
			if isReserved(e.Key) {
				d.cur.pos++
				continue
			}
			d.key, d.ok = d.path+string(e.Key), true
		}
		if d.ok {
			return d, nil
		}
		l.dirs = l.dirs[:len(l.dirs)-1]
	}
	return nil, nil
}

// next returns the next key; ok is false at the end.
func (l *lister) next() (key string, ok bool, err error) {
	for {
		d, err := l.head()
		if err != nil {
			return "", false, err
		}
		first := -1
		for i, c := range l.chunks {
			if first < 0 || c.head() < l.chunks[first].head() {
				first = i
			}
		}
		if first >= 0 && (d == nil || l.chunks[first].head() < d.key) {
			key, err := l.nextChunk(first)
			return key, err == nil, err
		}
		if d == nil {
			return "", false, nil
		}
		e := &d.cur.buf[d.cur.pos]
		d.cur.pos++
		d.ok = false
		if isSub(e.Key) && l.flat != len(d.path) {
			if err := l.enter(d.key, e.Value.Child); err != nil {
				return "", false, err
			}
			continue
		}
		if d.key >= l.bounds.low && strings.HasPrefix(d.key, l.bounds.prefix) {
			return d.key, true, nil
		}
	}
}

// nextChunk returns the next key of chunk map i. In a flat listing that may be a
// directory, whose chunks it skips.
func (l *lister) nextChunk(i int) (key string, err error) {
	c := l.chunks[i]
	key = c.head()
	slash := -1
	if l.flat != noFlat {
		slash = strings.IndexByte(key[l.flat:], '/')
	}
	if slash < 0 {
		err = c.advance()
	} else {
		key = key[:l.flat+slash+1]
		err = c.seek(string(keyAfter([]byte(key[len(c.dir):]))))
	}
	if err == nil && !c.more() {
		l.chunks = slices.Delete(l.chunks, i, i+1)
	}
	return key, err
}

// cursor reads the entries of a span, or their keys, in growing batches, so that a
// short look is cheap and a long one pays one search per batch.
type cursor[T any] struct {
	read func(tree.Span) iter.Seq2[T, error]
	key  func(T) []byte
	span tree.Span // of what is not in buf
	buf  []T
	pos  int       // first one not passed
	size int       // of the last batch
	pace tree.Pace // of batches, if pages are far
	end  bool
}

// peek returns the first one that is left, nil at the end. It is valid until the next
// call. most bounds a batch.
func (c *cursor[T]) peek(most int) (*T, error) {
	if c.pos < len(c.buf) {
		return &c.buf[c.pos], nil
	}
	if c.end {
		return nil, nil
	}
	c.size = min(max(8, 4*c.size, c.pace.First, c.pace.Times*c.size), most)
	c.buf, c.pos, c.end = c.buf[:0], 0, true
	for v, err := range c.read(c.span) {
		if err != nil {
			return nil, err
		}
		c.buf = append(c.buf, v)
		if len(c.buf) == c.size {
			c.span.From, c.span.After, c.end = c.key(v), true, false
			break
		}
	}
	if len(c.buf) == 0 {
		return nil, nil
	}
	return &c.buf[0], nil
}
