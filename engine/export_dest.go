package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/zipkv"
	"github.com/zarrdb/zarrdb/txn"
)

// destination is where an export goes.
type destination struct {
	lies  extent.Extent
	store kv.Store // nil for a directory or zip archive of this machine
}

// IsArchive reports whether a path has the name of a zip archive, as one of OME-Zarr ends in .ozx.
func IsArchive(path string) bool { return zipkv.Named(path) }

// destination finds the place that dest names, and opens it if it is the URL of
// a store, which then lives as long as s.
func (s *Source) destination(ctx context.Context, dest string) (d destination, err error) {
	scheme, _, ok := strings.Cut(dest, ":")
	if !ok || !s.env.Adapters.HasRoot(scheme) {
		d.lies.Path = dest
		return d, checkExport(dest)
	}
	u, err := zurl.Parse(dest)
	if err != nil {
		return d, err
	}
	if len(u.Adapters()) > 0 || scheme != "file" && IsArchive(u.Root().Path) {
		return d, fmt.Errorf("%s: only a directory of a store can be written there: %w", u.Redacted(), errors.ErrUnsupported)
	}
	if scheme == "file" {
		d.lies, err = extent.Of(u.Root())
		return d, err
	}
	at, err := s.env.Open(ctx, u)
	if err != nil {
		return d, err
	}
	d.lies = at.Extent
	if d.store, ok = at.Dir().(kv.Store); !ok {
		return d, fmt.Errorf("%s: nothing can be written there: %w", u.Redacted(), errors.ErrUnsupported)
	}
	return d, nil
}

// check reports whether there is something at the destination, and makes sure
// that it may be replaced or gone on with.
func (d destination) check(ctx context.Context, o ExportOptions) (there bool, err error) {
	if d.store != nil {
		there, err = checkStore(ctx, d.store, o)
	} else {
		there, err = checkLocal(ctx, d.lies.Path, o)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", d.lies, err)
	}
	return there, err
}

func checkStore(ctx context.Context, store kv.Store, o ExportOptions) (there bool, err error) {
	there, err = kv.Any(ctx, store, "")
	switch {
	case err != nil || !there || o.Resume:
		return there, err
	case !o.Overwrite:
		return true, errThere
	}
	if ok, err := isStore(ctx, store); ok || err != nil {
		return true, err
	}
	return true, fmt.Errorf("%w and is not a store: remove it yourself", errThere)
}

// isStore reports whether a directory looks like an export: it has the metadata of a Zarr
// node or is detected as a foreign format. It is false for a database.
func isStore(ctx context.Context, dir kv.Reader) (bool, error) {
	if ok, err := kv.Exists(ctx, dir, txn.FormatFile); ok || err != nil {
		return false, err
	}
	for _, name := range []string{names.V3, names.V2Array, names.V2Group, names.V1Array} {
		if ok, err := kv.Exists(ctx, dir, name); ok || err != nil {
			return ok, err
		}
	}
	for _, f := range source.Formats() {
		if !f.Written() {
			continue
		}
		heads := map[string][]byte{}
		for _, name := range f.Files {
			head, _, err := source.Head(ctx, dir, name)
			if err == nil {
				heads[name] = head
			} else if !errors.Is(err, kv.ErrNotFound) {
				return false, err
			}
		}
		if f.Detect(formats.Evidence{File: func(name string) []byte { return heads[name] }}) {
			return true, nil
		}
	}
	return false, nil
}

func checkLocal(ctx context.Context, dest string, o ExportOptions) (there bool, err error) {
	info, err := os.Lstat(dest)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	entries, err := os.ReadDir(dest)
	switch {
	case err == nil && len(entries) == 0:
		return false, nil
	case err == nil && o.Resume:
		return true, nil
	case !o.Overwrite:
		return true, errThere
	case info.Mode().IsRegular() && isZipFile(dest):
		return true, nil
	case err == nil:
		ok, err := isStoreAt(ctx, dest)
		if ok {
			err = extent.HoldsDatabase(ctx, dest)
		}
		if ok || err != nil {
			return true, err
		}
	}
	return true, fmt.Errorf("%w and is neither a store nor a zip archive: remove it yourself", errThere)
}

func isStoreAt(ctx context.Context, dir string) (bool, error) {
	d, err := dirkv.Open(dir, &dirkv.Options{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer d.Close()
	return isStore(ctx, d)
}

func isZipFile(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	_, err = io.ReadFull(f, head)
	return err == nil && zipkv.IsZip(head)
}
