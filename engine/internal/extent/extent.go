package extent

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
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/txn"
)

// ErrOverlap means that a destination is, holds or lies in the source, or that
// it holds or lies in a database; or that references to link lead into the
// database itself. Nothing was written.
var ErrOverlap = errors.New("engine: the destination must lie apart")

// Extent is a file or directory of this machine, or the keys at and below a
// path of another store.
type Extent struct {
	Store string // the store's URL up to the path, "" for this machine
	Path  string // without slashes around it if Store is not ""
}

// String returns the path, or the URL without secrets.
func (e Extent) String() string {
	if e.Store == "" {
		return e.Path
	}
	return zurl.Redact(e.Store + e.Path)
}

// Of returns the extent of the root of a URL pipeline.
func Of(p zurl.Part) (Extent, error) {
	if p.Scheme == "file" {
		path, err := p.OSPath()
		return Extent{Path: path}, err
	}
	store := p.Scheme + ":"
	if p.Host != "" {
		store += "//" + p.Host + "/"
	}
	key, err := p.Key()
	return Extent{store, names.Clean(key)}, err
}

// Separate returns ErrOverlap if dest is, holds or lies in source, or lies in a
// database.
func Separate(dest, source Extent) error {
	o := Against(dest)
	if err := o.With(source); err != nil || dest.Store != "" {
		return err
	}
	for _, dir := range o.trail[1:] {
		itself := dir.info != nil && o.trail[0].info != nil && os.SameFile(dir.info, o.trail[0].info)
		if !itself && isDatabase(dir.path) {
			return fmt.Errorf("%s: %w: it lies in the database %s", dest, ErrOverlap, dir.path)
		}
	}
	return nil
}

// maxBelow bounds the directories that an Overlap remembers.
const maxBelow = 1 << 16

// Overlap compares many extents with one destination. It is not safe for concurrent
// use.
type Overlap struct {
	dest  Extent
	trail []passed // of a dest of this machine, which comes first
	// below has the results of compared directories.
	below map[string]error
}

// Against returns the comparison with a destination. It looks at a path of this
// machine at once.
func Against(dest Extent) *Overlap {
	o := &Overlap{dest: dest}
	if dest.Store == "" {
		o.trail = trail(dest.Path)
	}
	return o
}

// With returns ErrOverlap if the destination and an extent have something in
// common.
func (o *Overlap) With(e Extent) error {
	if o.dest.Store != e.Store {
		return nil
	}
	if e.Store == "" {
		return o.withPath(e.Path)
	}
	switch dest := o.dest.Path; {
	case dest == e.Path:
		return o.failed("is", e.Path)
	case dest == "" || strings.HasPrefix(e.Path, names.Dir(dest)):
		return o.failed("holds", e.Path)
	case e.Path == "" || strings.HasPrefix(dest, names.Dir(e.Path)):
		return o.failed("lies in", e.Path)
	}
	return nil
}

func (o *Overlap) failed(how, path string) error {
	return fmt.Errorf("%s: %w: it %s %s", o.dest, ErrOverlap, how, Extent{o.dest.Store, path})
}

// withPath is With for a path of this machine. It looks at the directories
// above the files of one directory only once.
func (o *Overlap) withPath(path string) error {
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
		if o.below == nil || len(o.below) > maxBelow {
			o.below = map[string]error{}
		}
		o.below[above] = found
	}
	return found
}

// passed is a name on the way to a path, and the file there, nil if there is
// none.
type passed struct {
	path string
	info fs.FileInfo
}

// trail returns the file that a path leads to, every directory above it, and
// the directories above the targets of symbolic links on the way.
func trail(path string) (list []passed) {
	seen := map[string]bool{}
	var add func(string)
	add = func(path string) {
		for p := path; !seen[p]; p = filepath.Dir(p) {
			seen[p] = true
			info, _ := os.Stat(p) // nil if there is nothing
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

// isDatabase reports whether a directory has the file that makes it a
// database.
func isDatabase(dir string) bool {
	f, err := os.Open(filepath.Join(dir, txn.FormatFile))
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(txn.FormatWord))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == txn.FormatWord
}

// HoldsDatabase returns ErrOverlap if there is a database at or below a
// directory that is going to be removed. Links are not followed.
func HoldsDatabase(ctx context.Context, dest string) error {
	return filepath.WalkDir(dest, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && e.Name() == txn.FormatFile && e.Type().IsRegular() && isDatabase(filepath.Dir(path)) {
			err = fmt.Errorf("%s: %w: it holds the database %s", dest, ErrOverlap, filepath.Dir(path))
		}
		return err
	})
}
