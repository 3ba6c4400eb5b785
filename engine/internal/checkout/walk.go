package checkout

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/dirkv"
)

// Want is a value that a version has for a file.
type Want struct {
	Key   string
	Value kv.Value
	Ref   kv.ID  // identifies the value
	Doc   []byte // in place of the value: a document without copies of others
}

// File is a file of a folder.
type File struct {
	Key   string
	Value kv.Value
	Mark  Mark
}

// MarkOf returns the mark of a located file. A file that is so young that a further change could have the same time has none.
func MarkOf(v kv.Value) Mark {
	m := Sealed(v)
	if time.Since(time.Unix(0, m.Changed)) < young {
		return Mark{}
	}
	return m
}

// Sealed is [MarkOf] for a file that nobody else knows yet.
func Sealed(v kv.Value) Mark {
	at := v.(kv.Stamped).Stamp()
	if at.Changed.IsZero() {
		at.Changed = at.Modified
	}
	return Mark{Changed: at.Changed.UnixNano(), Tag: strings.Trim(at.ETag, `"`)}
}

// Renamed returns the mark of a file after its rename, since a rename moves the time of change. It is the zero Mark if a program has
// changed the file since it was staged.
func Renamed(was, now kv.Value) Mark {
	a, b := kv.StampOf(was), kv.StampOf(now)
	if a.ETag != b.ETag || !a.Modified.Equal(b.Modified) {
		return Mark{}
	}
	return Sealed(now)
}

// young is more than the steps of the clocks of file systems in use.
const young = 100 * time.Millisecond

// Files lists the files of a directory by key. A directory that is missing is an error.
func Files(ctx context.Context, dir *dirkv.Store) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for key, err := range dir.List(ctx, kv.ListOptions{}) {
			var v kv.Value
			if err == nil {
				v, err = dir.Locate(ctx, key)
			}
			switch {
			case errors.Is(err, kv.ErrNotFound): // removed since it was listed
				continue
			case err != nil:
				yield(File{}, err)
				return
			}
			if !yield(File{key, v, MarkOf(v)}, nil) {
				return
			}
		}
	}
}

// Step is one key with what is known of it.
type Step struct {
	Key   string
	Entry *Entry
	Want  *Want
	File  *File
}

// Join goes through three listings that are sorted by key.
func Join(entries iter.Seq2[Entry, error], wants iter.Seq2[Want, error], files iter.Seq2[File, error]) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		e, f, w := pull(entries, func(e *Entry) string { return e.Key }), pull(files, func(f *File) string { return f.Key }), pull(wants, func(w *Want) string { return w.Key })
		defer e.stop()
		defer f.stop()
		defer w.stop()
		for {
			if err := errors.Join(e.err, f.err, w.err); err != nil {
				yield(Step{}, err)
				return
			}
			if e.ended && f.ended && w.ended {
				return
			}
			s := Step{}
			for _, key := range []func() (string, bool){e.at, f.at, w.at} {
				if k, ok := key(); ok && (s.Key == "" || k < s.Key) {
					s.Key = k
				}
			}
			s.Entry, s.File, s.Want = e.take(s.Key), f.take(s.Key), w.take(s.Key)
			if !yield(s, nil) {
				return
			}
		}
	}
}

// head is the next item of a listing.
type head[T any] struct {
	next  func() (T, error, bool)
	stop  func()
	key   func(*T) string
	item  *T
	err   error
	ended bool
}

func pull[T any](list iter.Seq2[T, error], key func(*T) string) *head[T] {
	h := &head[T]{key: key}
	h.next, h.stop = iter.Pull2(list)
	h.advance()
	return h
}

func (h *head[T]) advance() {
	item, err, ok := h.next()
	h.item, h.err, h.ended = &item, err, !ok
}

func (h *head[T]) at() (string, bool) {
	if h.ended {
		return "", false
	}
	return h.key(h.item), true
}

// take returns the item if it has this key, and goes on.
func (h *head[T]) take(key string) *T {
	if k, ok := h.at(); !ok || k != key {
		return nil
	}
	item := h.item
	h.advance()
	return item
}

// Same reports whether the file of a step is as its entry says. An index knows nothing of a file that changed when the index
// was written, or later: its bytes are compared, as with verify. sum returns those of the file.
func (s *Step) Same(indexed time.Time, verify bool, sum func() (digest.Sum, error)) (bool, error) {
	if s.Entry == nil || s.File == nil {
		return s.Entry == nil && s.File == nil, nil
	}
	if m := s.Entry.Mark; !verify && m.Tag != "" && m == s.File.Mark && m.Changed < indexed.UnixNano() {
		return true, nil
	}
	is, err := sum()
	return err == nil && is == s.Entry.Sum, err
}

// Choice is what becomes of a change of the folder that another version does not have.
type Choice int

// Choices.
const (
	Refuse Choice = iota
	Keep
	Discard
)

// Action is what happens to a file when the folder moves to a version.
type Action int

// Actions.
const (
	Nothing Action = iota // there is neither an entry nor a file afterwards, or a file that no version has
	Stay                  // the entry stays, and the file as it is
	Adopt                 // the file has the bytes of the version
	Write                 // the file gets them
	Remove                // the file goes
	Take                  // the file stays, as a change of the new version
	Lost                  // the change would be lost
)

// Decide returns what happens to a file. same is [Step.Same], and equals whether the file has the bytes that are wanted.
// Without an entry, a file that is missing is one that was removed if adopting.
func (s *Step) Decide(same, equals, adopting bool, c Choice) Action {
	e, w, f := s.Entry, s.Want, s.File
	if same && !(adopting && e == nil && w != nil) {
		switch {
		case w == nil && e == nil:
			return Nothing
		case w == nil:
			return Remove
		case e != nil && e.Ref == w.Ref:
			return Stay
		}
		return Write
	}
	switch {
	case f != nil && w != nil && equals:
		return Adopt
	case f == nil && w == nil:
		return Nothing
	case c == Discard && w == nil && LeftOut(s.Key):
		return Nothing
	case c == Discard && w == nil:
		return Remove
	case c == Discard:
		return Write
	case e != nil && w != nil && e.Ref == w.Ref:
		return Stay
	case e == nil && w == nil:
		return Nothing
	case c == Keep && w == nil:
		return Nothing
	case c == Keep:
		return Take
	}
	return Lost
}

// LeftOut reports whether a file that no version has is a tool's own: hidden, temporary, or a lock.
func LeftOut(key string) bool {
	for part := range strings.SplitSeq(key, "/") {
		if strings.HasPrefix(part, ".") && !names.IsDocument(part) {
			return true
		}
	}
	name := path.Base(key)
	if slices.Contains([]string{"__lock", "Thumbs.db", "desktop.ini"}, name) {
		return true
	}
	return slices.ContainsFunc([]string{".tmp", ".temp", ".part", ".partial", ".lock", ".__lock", ".swp", "~"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Scope is the part of a version that a folder has; nil is all. Paths are sorted, and none is below another.
type Scope []string

// NewScope returns the scope of some paths.
func NewScope(paths []string) (s Scope) {
	clean := make([]string, len(paths))
	for i, p := range paths {
		clean[i] = names.Clean(p)
	}
	slices.Sort(clean)
	for _, p := range clean {
		switch {
		case p == "":
			return nil
		case !slices.ContainsFunc(s, func(above string) bool { return p == above || strings.HasPrefix(p, names.Dir(above)) }):
			s = append(s, p)
		}
	}
	return s
}

// Above reports whether a key is a document of a group above the paths, of which the folder has all but the copies.
func (s Scope) Above(key string) bool {
	dir := names.Dir(names.Parent(key))
	return names.IsDocument(key) && slices.ContainsFunc(s, func(p string) bool { return strings.HasPrefix(p, dir) })
}

// Has reports whether a key is part of the folder.
func (s Scope) Has(key string) bool {
	return s == nil || s.Above(key) && path.Base(key) != names.V2Metadata || slices.ContainsFunc(s, func(p string) bool { return strings.HasPrefix(key, names.Dir(p)) })
}

// Prefixes returns what to list, in the order of keys: names of documents, and prefixes that end in a slash.
func (s Scope) Prefixes() (list []string) {
	if s == nil {
		return []string{""}
	}
	for _, p := range s {
		list = append(list, names.Dir(p))
		for p != "" {
			p = names.Parent(p)
			for _, name := range []string{names.V3, names.V2Group, names.V2Attrs} {
				list = append(list, names.Dir(p)+name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// LostError means that a folder has changes that would be lost. Nothing was changed.
type LostError struct {
	Dir    string
	Keys   []string // the first few
	All    int
	Moving bool // to the other version: the folder cannot be committed before
}

// Is makes it a conflict.
func (e *LostError) Is(target error) bool { return target == fault.ErrConflict }

// Error names files and ways on.
func (e *LostError) Error() string {
	what, way := "1 file was changed here and differs", fmt.Sprintf("\"zarrdb commit %s\" first, or", e.Dir)
	if e.All > 1 {
		what = fmt.Sprintf("%d files were changed here and differ", e.All)
	}
	if e.Moving {
		way = "\"zarrdb checkout\" again with"
	}
	return fmt.Sprintf("%s: %s in the other version: %s: %s --keep PATH keeps what is here as a change of that version, or --discard PATH takes the version's", e.Dir, what, strings.Join(e.Keys, ", "), way)
}

// Folds finds names that a file system cannot tell apart which takes "A" for "a".
type Folds map[string]string

// Add notes a key and the directories above it.
func (f Folds) Add(key string) error {
	for p := key; p != ""; p = names.Parent(p) {
		low := strings.ToLower(p)
		if was, ok := f[low]; ok && was != p {
			return fmt.Errorf("%w: %s and %s are one file here: the file system does not tell upper from lower case", kv.ErrInvalidKey, was, p)
		}
		f[low] = p
	}
	return nil
}
