package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// ErrFormat means that a resource is not, or not unambiguously, of a format
// that can be read.
var ErrFormat = errors.New("engine: format not recognised")

// Kind is the kind of resource that a URL names (ZEP 8, "Resource kinds").
type Kind uint8

// The kinds. Either is a path of which only the store can tell.
const (
	either Kind = iota
	File
	Directory
	dataset
)

// Place is how far a URL pipeline has been followed.
type Place struct {
	// URL is the pipeline up to here.
	URL zurl.URL
	// View is the store that the place is in.
	View kv.Reader
	// Path is the key of a file, or the path of a directory or node, in View,
	// without slashes around it.
	Path string
	Kind Kind
	// Version is the only format that a Dataset may be in, 0 for any.
	Version zarr.Version
	// OSPath is where the place is on this machine, "" if it is not a plain
	// file or directory.
	OSPath string
	// Database says that View is a version of a database, which holds nodes of any
	// format.
	Database bool
	// Value is the text that a Dataset is made of, if it is one text, so that
	// it can be read as a file too; else nil.
	Value kv.Value
	// Store is the directory in another view that the View of a Dataset shows;
	// else nil.
	Store *Place
	// Extent is where the bytes of the place lie: the root of the URL.
	Extent extent.Extent

	// origin is the file in a store whose content, decompressed or a range of
	// it, this place is; nil if it is a file itself.
	origin *Place
	// set is the reference set that View shows.
	set *Set
	// through is the reference set on the way to the place, whose values lie
	// elsewhere; else nil.
	through *Set
	// located is a file that detection has found on a server, and read the
	// beginning of; else nil.
	located kv.Value
	// looked says that detection knows the documents of a directory, and copyAlone
	// that .zmetadata is its only one. copies says that there may be consolidated metadata.
	looked, copyAlone, copies bool
}

// placeIn is the place that a part of a URL names in a store.
func placeIn(view kv.Reader, part zurl.Part) (Place, error) {
	key, err := part.Key()
	if err != nil {
		return Place{}, err
	}
	at := Place{View: view, Path: names.Clean(key)}
	if part.Directory() {
		at.Kind = Directory
	}
	return at, nil
}

// References returns the reference set on the way to the place, to whose values files
// elsewhere belong, or nil.
func (p Place) References() *Set { return p.through }

// File locates the bytes of a place that is a file. The error of another one is
// ErrFormat, or kv.ErrNotFound.
func (p Place) File(ctx context.Context) (kv.Value, error) {
	if p.Value != nil {
		return p.Value, nil
	}
	if p.located != nil {
		return p.located, nil
	}
	if p.Kind == Directory || p.Kind == dataset {
		return nil, fmt.Errorf("%w: it is not a file", ErrFormat)
	}
	return kv.Locate(ctx, p.View, p.Path)
}

// begun is File with its first n bytes at hand, if they come in the request that finds
// the file.
func (p Place) begun(ctx context.Context, n int64) (kv.Value, error) {
	if n == 0 || p.Value != nil || p.located != nil || p.Kind == Directory || p.Kind == dataset {
		return p.File(ctx)
	}
	v, head, err := kv.LocateRange(ctx, p.View, p.Path, kv.Span(0, n), 0)
	if err == nil && head != nil {
		v = kv.Held(v, 0, head)
	}
	return v, err
}

// Dir returns the view below a place that is a directory.
func (p Place) Dir() kv.Reader {
	if p.Path == "" {
		return p.View
	}
	return kv.Sub(p.View, p.Path+"/")
}
