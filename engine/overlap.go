package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/txn"
)

// ErrOverlap means that a destination is, holds or lies in what is read, or
// that it holds or lies in a database; or that references to link lead into the
// database itself. Nothing was written.
var ErrOverlap = errors.New("engine: the destination must lie apart")

// Every function that writes to a destination compares it with what it reads
// before it changes anything there:
//
//	Export             directory, zip, memory, bucket ─┐
//	ExportReferences   JSON file, parquet directory   ─┼─▶ separate
//	Backup, BackupZip, Clone, Restore, Salvage        ─┘
//	the caller's own file                             ──▶ Source.Apart
//
// Where something may be replaced, [Source.unreferred] compares it with the
// files that references lead to as well.
//
// Paths of this machine are compared by what they lead to (device and inode),
// through links; keys of other stores by their names.

// extent is a file or directory of this machine, or the keys at and below a
// path of another store.
type extent struct {
	store string // the store's URL up to the path, "" for this machine
	path  string // without slashes around it if store is not ""
}

func (e extent) String() string {
	if e.store == "" {
		return e.path
	}
	return zurl.Redact(e.store + e.path)
}

// extentOf returns what the root of a URL pipeline names.
func extentOf(p zurl.Part) (extent, error) {
	if p.Scheme == "file" {
		path, err := p.OSPath()
		return extent{path: path}, err
	}
	store := p.Scheme + ":"
	if p.Host != "" {
		store += "//" + p.Host + "/"
	}
	key, err := p.Key()
	return extent{store, names.Clean(key)}, err
}

// separate returns ErrOverlap if dest is, holds or lies in source, or lies in a
// database.
func separate(dest, source extent) error {
	o := newOverlap(dest)
	if err := o.with(source); err != nil || dest.store != "" {
		return err
	}
	for _, dir := range o.trail[1:] {
		itself := dir.info != nil && o.trail[0].info != nil && os.SameFile(dir.info, o.trail[0].info)
		if !itself && isDatabaseDir(dir.path) {
			return fmt.Errorf("%s: %w: it lies in the database %s", dest, ErrOverlap, dir.path)
		}
	}
	return nil
}

// Apart returns [ErrOverlap] if a file of this machine that is to be written is, or
// lies in, what the source reads, or lies in a database; or, where it is there
// already, if values of the source refer to it. That costs a pass over all of these.
func (s *Source) Apart(ctx context.Context, file string) error {
	at, err := s.dataset(ctx)
	if err != nil {
		return err
	}
	dest := extent{path: file}
	if err := separate(dest, at.lies); err != nil {
		return err
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil // nothing is replaced
	}
	return s.unreferred(ctx, at, dest)
}

// unreferred returns ErrOverlap if dest, where there is something, is or holds a
// file that virtual values or references of a place of the source lead to. It
// costs a pass over all of them.
func (s *Source) unreferred(ctx context.Context, at Place, dest extent) error {
	var files *virtual.Resolver
	var urls func(yield func(string, error) bool)
	switch view := at.View.(type) {
	case *Snapshot:
		files, urls = view.files, virtualURLs(view.Values(ctx, names.Dir(at.Path)))
	case *Session:
		files, urls = at.db.files, virtualURLs(view.Values(ctx, names.Dir(at.Path)))
	default:
		if at.through == nil {
			return nil
		}
		files = at.through.files
		urls = func(yield func(string, error) bool) {
			for e, err := range at.through.entries(ctx) {
				if !yield(e.URL, err) {
					return
				}
			}
		}
	}
	o := newOverlap(dest)
	last := ""
	for url, err := range urls {
		if err != nil {
			return err
		}
		if url == "" || url == last {
			continue
		}
		last = strings.Clone(url) // it may be a part of a larger string
		to, err := files.PlaceOf(last)
		if err != nil {
			continue // it may not be followed, so nothing is read there
		}
		var lies extent
		if to.Root == virtual.Inside {
			if lies.store = at.lies.store; lies.store == "" {
				continue // a member of the archive, which was compared
			}
			lies.path = names.Join(names.Parent(at.lies.path), to.Path)
		} else {
			u, err := referredURL(to.URL())
			if err == nil {
				lies, err = extentOf(u.Root())
			}
			if err != nil {
				continue // as above
			}
		}
		if err := o.with(lies); err != nil {
			return fmt.Errorf("%w, which values refer to", err)
		}
	}
	return nil
}

// virtualURLs yields where virtual values lie, and "" for others.
func virtualURLs(values func(func(txn.KeyValue, error) bool)) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		values(func(v txn.KeyValue, err error) bool { return yield(v.URL, err) })
	}
}

// overlap compares many extents with one destination.
type overlap struct {
	dest  extent
	trail []passed // of a dest of this machine, which comes first
	// below are directories that were compared, and what came of it.
	below map[string]error
}

func newOverlap(dest extent) *overlap {
	o := &overlap{dest: dest}
	if dest.store == "" {
		o.trail = trail(dest.path)
	}
	return o
}

// with returns ErrOverlap if the destination and an extent have something in
// common.
func (o *overlap) with(e extent) error {
	if o.dest.store != e.store {
		return nil
	}
	if e.store == "" {
		return o.withPath(e.path)
	}
	switch dest := o.dest.path; {
	case dest == e.path:
		return o.failed("is", e.path)
	case dest == "" || strings.HasPrefix(e.path, names.Dir(dest)):
		return o.failed("holds", e.path)
	case e.path == "" || strings.HasPrefix(dest, names.Dir(e.path)):
		return o.failed("lies in", e.path)
	}
	return nil
}

func (o *overlap) failed(how, path string) error {
	return fmt.Errorf("%s: %w: it %s %s", o.dest, ErrOverlap, how, extent{o.dest.store, path})
}

// withPath is with for a path of this machine. Of the files in one directory it
// looks at what is above only once.
func (o *overlap) withPath(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(abs)
	if err == nil {
		for i, p := range o.trail {
			if p.info != nil && os.SameFile(p.info, info) {
				if i == 0 {
					return o.failed("is", path)
				}
				return o.failed("lies in", path)
			}
		}
	}
	above := filepath.Dir(abs)
	if at, err := os.Lstat(abs); err == nil && at.Mode()&fs.ModeSymlink != 0 {
		above = abs
	}
	found, known := o.below[above]
	if !known {
		for _, p := range trail(above) {
			if p.info != nil && o.trail[0].info != nil && os.SameFile(p.info, o.trail[0].info) {
				found = o.failed("holds", path)
				break
			}
		}
		if o.below == nil || len(o.below) > maxKnownURLs {
			o.below = map[string]error{}
		}
		o.below[above] = found
	}
	return found
}

// passed is a name on the way to a path, and what it leads to, nil if there is
// nothing.
type passed struct {
	path string
	info fs.FileInfo
}

// trail returns what a path leads to, every directory above it, and those above
// the targets of symbolic links on the way.
func trail(path string) (list []passed) {
	seen := map[string]bool{}
	var add func(string)
	add = func(path string) {
		for p := path; !seen[p]; p = filepath.Dir(p) {
			seen[p] = true
			info, err := os.Stat(p)
			if err != nil {
				info = nil
			}
			list = append(list, passed{p, info})
			link, err := os.Readlink(p)
			if err != nil {
				continue
			}
			if !filepath.IsAbs(link) {
				at, err := filepath.EvalSymlinks(filepath.Dir(p))
				if err != nil {
					continue
				}
				link = filepath.Join(at, link)
			}
			add(filepath.Clean(link))
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = filepath.Clean(path) // only if there is no working directory
	}
	add(abs)
	return list
}

// isDatabaseDir reports whether a directory has the file that makes it a
// database.
func isDatabaseDir(dir string) bool {
	f, err := os.Open(filepath.Join(dir, txn.FormatFile))
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(formatWord))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == formatWord
}

// holdsDatabase returns ErrOverlap if there is a database at or below a
// directory that is going to be removed. Links are not followed.
func holdsDatabase(ctx context.Context, dest string) error {
	return filepath.WalkDir(dest, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && e.Name() == txn.FormatFile && e.Type().IsRegular() && isDatabaseDir(filepath.Dir(path)) {
			err = fmt.Errorf("%s: %w: it holds the database %s", dest, ErrOverlap, filepath.Dir(path))
		}
		return err
	})
}
