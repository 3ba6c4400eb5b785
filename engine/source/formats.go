package source

import (
	"context"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/avif"
	"github.com/zarrdb/zarrdb/formats/bmp"
	"github.com/zarrdb/zarrdb/formats/hdf5"
	"github.com/zarrdb/zarrdb/formats/icechunk"
	"github.com/zarrdb/zarrdb/formats/jpeg"
	"github.com/zarrdb/zarrdb/formats/n5"
	"github.com/zarrdb/zarrdb/formats/netcdf3"
	"github.com/zarrdb/zarrdb/formats/ocdbt"
	"github.com/zarrdb/zarrdb/formats/png"
	"github.com/zarrdb/zarrdb/formats/precomputed"
	"github.com/zarrdb/zarrdb/formats/tiff"
	"github.com/zarrdb/zarrdb/formats/webp"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// Formats is the table of foreign formats: a line each.
func Formats() []formats.Format {
	return []formats.Format{
		n5.Format(),
		precomputed.Format(),
		avif.Format(),
		bmp.Format(),
		jpeg.Format(),
		png.Format(),
		tiff.Format(),
		webp.Format(),
		netcdf3.Format(),
		ocdbt.Format(),
		icechunk.Format(),
		hdf5.Format(),
	}
}

// DefaultCodecs returns a new registry of the codecs for stores, reference sets and
// foreign formats: [builtin.Registry], and the codecs of formats.
func DefaultCodecs() *codecs.Registry {
	r := builtin.Registry()
	for _, f := range Formats() {
		for _, c := range f.Codecs {
			r.Register(c)
		}
	}
	return r
}

// ForeignAdapter makes an adapter of a foreign format.
func ForeignAdapter(f formats.Format) Adapter {
	a := Adapter{
		Open: func(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error) {
			return e.openForeign(ctx, &f, from, part)
		},
		Files: f.Files,
	}
	if f.Detect != nil {
		a.Detect = func(e Evidence) bool {
			if e.heads == nil {
				return !f.Directory && f.Detect(formats.Evidence{Head: e.Head})
			}
			return f.Directory && f.Detect(formats.Evidence{File: e.File})
		}
	}
	return a
}

// openForeign opens something in a foreign format as a reference set.
func (e *Env) openForeign(ctx context.Context, f *formats.Format, from Place, part zurl.Part) (Place, error) {
	base := formats.Base{}
	var url string
	if f.Directory {
		if from.Kind == File {
			return from, fmt.Errorf("%w: it is a file, and %s is a directory", ErrFormat, f.Scheme)
		}
		base.Files = from.Dir()
		url = urlOf(from)
	} else {
		file, err := from.begun(ctx, f.Head)
		if err != nil {
			return from, err
		}
		base.File = file
		url, base.Files = baseOf(from)
		if base.Name = fileName(from); base.Name == "" || from.origin != nil {
			return from, fmt.Errorf("%w: %s: is read from a file that lies in a store, not from one that is decompressed or cut out on the way", ErrFormat, f.Scheme)
		}
	}
	s := e.newSet(url, base.Files)
	set, err := f.Open(ctx, base, formats.Options{Version: part.Version, Skipped: e.skipped, Warn: e.warning(from)})
	if err != nil {
		return from, err
	}
	s.foreign, s.files.Gap = set, f.Gap
	at, err := placeIn(s, part)
	at.set, at.Store = s, &from
	if !f.Store {
		at.Kind = dataset
	}
	return at, err
}

// urlOf returns the URL of a directory as references are resolved against it.
func urlOf(at Place) string {
	if len(at.URL.Adapters()) > 0 {
		return virtual.Inside
	}
	url, ok := referred(at.URL.Root())
	if !ok {
		return virtual.Inside
	}
	url, _, _ = strings.Cut(url, "?")
	return strings.TrimRight(url, "/") + "/"
}

// fileName is the name of a file in its folder.
func fileName(at Place) string {
	return at.Path[strings.LastIndexByte(at.Path, '/')+1:]
}

// newSet returns a set without content whose references are resolved against base,
// which is folder.
func (e *Env) newSet(base string, folder kv.Reader) *Set {
	s := &Set{}
	s.opts.Read.Skipped = e.skipped
	s.files = e.Resolver(base, folder)
	s.opts.Rules = e.Follow.rules(base)
	s.opts.Open = func(ctx context.Context, root, path string) (kv.Value, error) {
		return s.files.OpenAt(ctx, refs.Place{Root: root, Path: path})
	}
	return s
}
