package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/zipkv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// maxTold bounds the keys that warnings name.
const maxTold = 8

// The built-in schemes are these two lists and RemoteRoots.

func builtinRoots() map[string]Root {
	roots := RemoteRoots(nil)
	roots["file"] = openFile
	roots["memory"] = openMemory
	return roots
}

func builtinAdapters() map[string]Adapter {
	steps := map[string]Adapter{
		"zip":        {Open: openZip, Detect: isZip},
		"gzip":       {Open: openGzip, Detect: isGzip},
		"zstd":       {Open: openZstd, Detect: isZstd},
		"byte-range": {Open: openByteRange},
		"json":       {Open: openJSON},
		schemeZarr:   {Open: openZarr(0), Detect: isZarrOld, Files: []string{names.V1Array, docDraftGroup, docDraftArray}},
		schemeZarr2:  {Open: openZarr(zarr.V2), Detect: isZarr2, Files: []string{names.V2Array, names.V2Group, names.V2Metadata}},
		schemeZarr3:  {Open: openZarr(zarr.V3), Detect: isZarr3, Files: []string{names.V3}},
		"kerchunk":   {Open: openKerchunk, Detect: isReferenceSet, Files: []string{docParquet}},
		"zarrdb":     {Open: openZarrdb, Detect: isZarrdb, Files: []string{txn.FormatFile}},
	}
	for _, f := range Formats() {
		steps[f.Scheme] = ForeignAdapter(f)
	}
	return steps
}

// openFile opens file:///path: a directory as a store, or a file in the
// directory around it.
func openFile(_ context.Context, e *Env, part zurl.Part) (Place, error) {
	path, err := part.OSPath()
	if err != nil {
		return Place{}, err
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err != nil {
		return Place{}, err
	}
	if info.IsDir() {
		view, err := e.openDir(path)
		return Place{View: view, Kind: Directory, OSPath: path}, err
	}
	if strings.HasSuffix(part.Path, "/") {
		return Place{}, fmt.Errorf("%w: it is a file, the URL says a directory", ErrFormat)
	}
	view, err := e.openDir(filepath.Dir(path))
	return Place{View: view, Path: filepath.Base(path), Kind: File, OSPath: path}, err
}

// openDir opens a directory for reading until the source is closed.
func (e *Env) openDir(path string) (kv.Reader, error) {
	store, err := dirkv.Open(path, &dirkv.Options{ReadOnly: true, Follow: e.Follow.folders()})
	if err != nil {
		return nil, err
	}
	e.OnClose(store.Close)
	return store, nil
}

// memories are the stores, each a *kv.Mem, that memory: URLs name, by the first
// component of their path. They live as long as the process.
var memories sync.Map

// Memory returns the store that memory:NAME/ names. It is made when it is
// first asked for.
func Memory(name string) *kv.Mem {
	m, _ := memories.LoadOrStore(name, kv.NewMem())
	return m.(*kv.Mem)
}

func openMemory(_ context.Context, _ *Env, part zurl.Part) (Place, error) {
	key, err := part.Key()
	if err != nil {
		return Place{}, err
	}
	name, path, below := strings.Cut(key, "/")
	p := Place{View: Memory(name), Path: names.Clean(path)}
	if !below || path == "" || strings.HasSuffix(path, "/") {
		p.Kind = Directory
	}
	return p, nil
}

func isZip(e Evidence) bool { return zipkv.IsZip(e.Head) }

func openZip(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error) {
	v, err := from.File(ctx)
	if err != nil {
		return from, err
	}
	z, err := zipkv.Open(ctx, v)
	if err != nil {
		return from, err
	}
	if names := z.Refused(); len(names) > 0 && e.Warn != nil {
		more := ""
		if n := len(names) - maxTold; n > 0 {
			names, more = names[:maxTold], fmt.Sprintf(" and %d more", n)
		}
		e.Warn(fmt.Sprintf("members of %s are left out, because no store can have keys like theirs: %q%s", from.URL.Redacted(), names, more))
	}
	return placeIn(z, part)
}

func isZarr2(e Evidence) bool { return e.has(names.V2Array) || e.has(names.V2Group) || isCopyAlone(e) }
func isZarr3(e Evidence) bool { return e.has(names.V3) && !meta.IsDraft3Entry(e.File(names.V3)) }

// schemeZarr opens a store of any format. Formats without an adapter of their
// own are detected as it.
const schemeZarr = "zarr"

// The schemes of one format each.
const (
	schemeZarr2 = "zarr2"
	schemeZarr3 = "zarr3"
)

// Documents at the root of a store in the first layout of the early v3 draft.
// They may be missing; then the names of the keys below tell the format.
const (
	docDraftGroup = "meta/group.json"
	docDraftArray = "meta/array.json"
)

// isZarrOld detects Zarr v1 and the early v3 draft, which have no adapter of
// their own. Their files have ordinary names, so the newer formats win.
func isZarrOld(e Evidence) bool {
	if isZarr2(e) || isZarr3(e) {
		return false
	}
	return meta.IsDraft3Entry(e.File(names.V3)) || e.has(names.V1Array) || e.has(docDraftGroup) || e.has(docDraftArray)
}

// isDraftWithoutRoot detects a store in the first layout of the early v3 draft
// whose root has no document: the directories in meta end with ".g" or ".a". Of a
// view that cannot be listed nothing is known.
func isDraftWithoutRoot(ctx context.Context, view kv.Reader) (bool, error) {
	list, ok := view.(kv.Lister)
	if !ok {
		return false, nil
	}
	for d, err := range kv.ListDir(ctx, list, "meta/") {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, kv.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if d.Prefix && (strings.HasSuffix(d.Name, ".g") || strings.HasSuffix(d.Name, ".a")) {
			return true, nil
		}
	}
	return false, nil
}

// listedForNodes is how many keys are listed to find a node.
const listedForNodes = 1000

// hasNodes reports whether there are documents of Zarr v2 or v3 among the first keys of
// a view: TensorStore, for example, writes arrays without groups above them.
func hasNodes(ctx context.Context, view kv.Reader) (bool, error) {
	list, ok := view.(kv.Lister)
	if !ok {
		return false, nil
	}
	n := 0
	for key, err := range list.List(ctx, kv.ListOptions{}) {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, kv.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		switch path.Base(key) {
		case names.V3, names.V2Array, names.V2Group:
			return true, nil
		}
		if n++; n == listedForNodes {
			break
		}
	}
	return false, nil
}

func openZarr(version zarr.Version) func(context.Context, *Env, Place, zurl.Part) (Place, error) {
	return func(ctx context.Context, _ *Env, from Place, part zurl.Part) (Place, error) {
		if from.Kind == File {
			return from, fmt.Errorf("%w: it is a file, not a Zarr hierarchy", ErrFormat)
		}
		path, err := part.Key()
		if err != nil {
			return from, err
		}
		path = names.Clean(path)
		for c := range strings.SplitSeq(path, "/") {
			if c == ".." || c == "." {
				return from, fmt.Errorf("%w: the path %q leaves the hierarchy", ErrFormat, part.Path)
			}
		}
		view := from.Dir()
		if version == zarr.V2 && (from.copyAlone || !from.looked) {
			if view, err = policy.WithDocuments(ctx, view, from.copyAlone); err != nil {
				return from, err
			}
		}
		if !from.copyAlone && (from.copies || !from.looked) {
			view = policy.WithTold(view)
		}
		if version != zarr.V3 {
			view = policy.WithSeparators(view)
		}
		return Place{View: view, Path: path, Kind: dataset, Version: version, Store: &from}, nil
	}
}

func isZarrdb(e Evidence) bool {
	return bytes.HasPrefix(e.File(txn.FormatFile), []byte(txn.FormatWord))
}

// openZarrdb opens a version of a database: zarrdb:PATH, zarrdb:@branch.B/PATH,
// zarrdb:@tag.T/PATH, zarrdb:@REV/PATH, or zarrdb:@TIME/PATH for the branch main
// as it was then. A slash in the version is written %2F. Nodes of a version
// need no detection: a path names a node, whatever its format.
func openZarrdb(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error) {
	if from.OSPath == "" {
		return from, fmt.Errorf("%w: a database must lie in a directory of this machine", ErrFormat)
	}
	at, err := placeIn(nil, part)
	if err != nil {
		return from, err
	}
	if e.Database == nil {
		return from, fmt.Errorf("%w: a database is not opened from here", ErrFormat)
	}
	at.Database = true
	at.View, err = e.Database(ctx, from.OSPath, part.At())
	return at, err
}
