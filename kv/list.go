package kv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Keys collects every key that begins with prefix, in byte order.
func Keys(ctx context.Context, l Lister, prefix string) ([]string, error) {
	var keys []string
	for key, err := range l.List(ctx, ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Any reports whether some key begins with prefix.
func Any(ctx context.Context, l Lister, prefix string) (bool, error) {
	for _, err := range l.List(ctx, ListOptions{Prefix: prefix}) {
		return err == nil, err
	}
	return false, nil
}

// ListDir is list_dir of the abstract store interface: it yields the direct
// children of prefix, which is empty or ends in a slash, ordered by name, a
// key before a prefix of the same name. The sequence ends after the first
// error.
//
// The fall-back reads the listing of l and seeks past the keys below a child,
// so its cost grows with the number of children, not of keys. It holds one name
// at a time.
func ListDir(ctx context.Context, l Lister, prefix string) iter.Seq2[DirEntry, error] {
	return func(yield func(DirEntry, error) bool) {
		if err := validDirPrefix(prefix); err != nil {
			yield(DirEntry{}, err)
			return
		}
		if d, ok := l.(DirLister); ok && ownListDir(ctx, d, prefix, yield) {
			return
		}
		w := dirWalk{ctx: ctx, l: l, prefix: prefix, yield: yield}
		if err := w.run(); err != nil {
			yield(DirEntry{}, err)
		}
	}
}

// ownListDir yields the listing of the view's own method. It returns false if
// that method is not supported.
func ownListDir(ctx context.Context, d DirLister, prefix string, yield func(DirEntry, error) bool) bool {
	first := true
	for e, err := range d.ListDir(ctx, prefix) {
		if first && errors.Is(err, errors.ErrUnsupported) {
			return false
		}
		first = false
		if !yield(e, err) || err != nil {
			break
		}
	}
	return true
}

// dirWalk turns a listing in byte order of keys into one ordered by names.
// The two differ: "a-b" comes before "a/x", yet the name "a" before "a-b".
//
//	keys   a-b  a-c  a/x  a/y  b       names   a/  a-b  a-c  b
//
// So at each name, the walk first checks every beginning of the name that ends
// before a byte lower than '/': is it a prefix too? Each beginning is checked
// once, because names that share it follow each other.
type dirWalk struct {
	ctx    context.Context
	l      Lister
	prefix string
	yield  func(DirEntry, error) bool

	last  string   // the name met before
	sub   string   // the child that the listing is below, with its slash
	early []string // prefixes yielded before the listing reached them, nested
	done  bool     // yield returned false
}

// scanBelow is how many keys below a child are read before the walk seeks: a
// new listing costs about as much as that.
const scanBelow = 16

func (w *dirWalk) run() error {
	opts := ListOptions{Prefix: w.prefix}
	for {
		seek, err := w.scan(opts)
		if err != nil || seek == "" || w.done {
			return err
		}
		opts.After = seek
	}
}

// scan reads a listing to its end, or up to a point from which a new listing
// after the key seek is cheaper.
func (w *dirWalk) scan(opts ListOptions) (seek string, err error) {
	below := 0
	for key, err := range w.l.List(w.ctx, opts) {
		if err != nil {
			return "", err
		}
		if opts.After != "" && key <= opts.After || !strings.HasPrefix(key, w.prefix) {
			// Seeking would never end on a view like that.
			return "", fmt.Errorf("kv: view lists %s although asked for keys that begin with %s after %s",
				quoteKey(key), quoteKey(w.prefix), quoteKey(opts.After))
		}
		rest := key[len(w.prefix):]
		if w.sub != "" && strings.HasPrefix(rest, w.sub) {
			// Keys beyond the end are no UTF-8 and are read one by one.
			end := subtreeEnd(w.prefix + w.sub)
			if below++; below >= scanBelow && key < end {
				return end, nil
			}
			continue
		}
		name, _, isDir := strings.Cut(rest, "/")
		if w.sub, below = "", 0; isDir {
			w.sub = rest[:len(name)+1]
		}
		if err := w.meet(name, isDir); err != nil || w.done {
			return "", err
		}
	}
	return "", nil
}

// meet yields a name and the prefixes that belong before it.
func (w *dirWalk) meet(name string, isDir bool) error {
	common := commonPrefix(w.last, name)
	for i := common; i < len(name); i++ {
		// The beginning at common was checked at the last name, unless it is
		// that name.
		if name[i] >= '/' || i == common && len(w.last) > common {
			continue
		}
		found, err := Any(w.ctx, w.l, w.prefix+name[:i]+"/")
		if err != nil {
			return err
		}
		if found {
			w.early = append(w.early, name[:i])
			if w.emit(name[:i], true); w.done {
				return nil
			}
		}
	}
	w.last = name
	if n := len(w.early); isDir && n > 0 && w.early[n-1] == name {
		w.early = w.early[:n-1]
		return nil
	}
	w.emit(name, isDir)
	return nil
}

func (w *dirWalk) emit(name string, isDir bool) {
	w.done = !w.yield(DirEntry{Name: name, Prefix: isDir}, nil)
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
