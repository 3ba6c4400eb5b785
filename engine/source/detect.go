package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

// headBytes is the length of the beginning of a file, or of a file in a
// directory, that format detection reads: enough for documents that name their
// format.
const headBytes = 64 << 10

// Evidence is the data of a place for format detection, read once for all
// adapters.
type Evidence struct {
	// Head is the beginning of a file, nil for a directory.
	Head []byte
	// heads are the beginnings of files in a directory, by name.
	heads map[string][]byte
}

// has reports whether a directory holds a file of that name, which must be one
// that an adapter asks for.
func (e Evidence) has(name string) bool { return e.heads[name] != nil }

// File returns the beginning of that file, nil without it.
func (e Evidence) File(name string) []byte { return e.heads[name] }

// detect adds the one adapter that fits a place.
func (e *Env) detect(ctx context.Context, at Place) (Place, error) {
	named := at
	ev, at, err := e.look(ctx, at)
	if err != nil {
		return at, fmt.Errorf("%s: %w", at.URL.Redacted(), err)
	}
	match, nodes := e.matches(ev), false
	if len(match) == 0 && at.Kind != File && e.Adapters.steps[schemeZarr].Detect != nil {
		// The contents of an archive or a store of keys were put together for a
		// reason; in a directory or bucket anything may lie beside nodes.
		whole := len(at.URL.Adapters()) > 0
		draft, err := isDraftWithoutRoot(ctx, at.Dir())
		if err == nil && !draft {
			if nodes, err = hasNodes(ctx, at.Dir()); !whole && ctx.Err() == nil {
				err = nil // there it is for a hint only
			}
		}
		if err != nil {
			return at, fmt.Errorf("%s: %w", at.URL.Redacted(), err)
		}
		if draft || nodes && whole {
			match = []string{schemeZarr}
		}
	}
	switch len(match) {
	case 0:
		if named.Kind == either && at.Kind == Directory {
			if err := absentAt(ctx, at); err != nil {
				return named, fmt.Errorf("%s: %w (%w: no file has that name, and %s)", named.URL.Redacted(), err, ErrFormat, e.lacks(Directory))
			}
		}
		why := e.lacks(at.Kind) + inIt(ctx, at)
		if nodes {
			why += fmt.Sprintf("; '%s' names all of it as one hierarchy", at.URL.Append(zurl.Part{Scheme: schemeZarr}).Redacted())
		}
		if format := foreign(ev.Head); format != "" {
			why = "it is a " + format
		}
		return at, fmt.Errorf("%s: %w: %s", at.URL.Redacted(), ErrFormat, why)
	case 1:
	default:
		var urls []string
		for _, scheme := range match {
			urls = append(urls, "'"+at.URL.Append(zurl.Part{Scheme: scheme}).Redacted()+"'") // for a shell
		}
		if !e.FromPath || !slices.Equal(match, []string{schemeZarr2, schemeZarr3}) {
			return at, fmt.Errorf("%s: %w: it could be %s; name one of them: %s", at.URL.Redacted(), ErrFormat, strings.Join(match, " or "), strings.Join(urls, " or "))
		}
		if e.Warn != nil {
			e.Warn(fmt.Sprintf("%s holds metadata of Zarr v2 and v3; v3 is read, and v2 as %s", at.URL.Redacted(), urls[0]))
		}
		match = match[1:]
	}
	part := zurl.Part{Scheme: match[0]}
	at.looked, at.copyAlone, at.copies = ev.heads != nil, isCopyAlone(ev), mayHaveCopies(ev)
	next, err := e.step(ctx, at, part)
	if err != nil {
		return at, fmt.Errorf("%s: %w", at.URL.Redacted(), err)
	}
	next.URL = at.URL.Append(part)
	return next, nil
}

// absentAt returns kv.ErrNotFound for a directory without a known file: a web
// server gives no more evidence.
func absentAt(ctx context.Context, at Place) error {
	if l, ok := at.Dir().(kv.Lister); ok {
		if any, err := kv.Any(ctx, l, ""); err != nil || any {
			return err
		}
	}
	return kv.ErrNotFound
}

// matches lists the adapters that evidence speaks for.
func (e *Env) matches(ev Evidence) []string {
	var match []string
	for scheme, a := range e.Adapters.steps {
		if a.Detect != nil && a.Detect(ev) {
			match = append(match, scheme)
		}
	}
	slices.Sort(match)
	return match
}

// foreign describes a file of a format that nothing here reads, and how to make a store of the
// file; "" for other files.
func foreign(head []byte) string {
	for what, magic := range map[string][]string{
		"GRIB file, whose values nothing here decodes, through reference sets neither; xarray decodes it with cfgrib, and to_zarr writes a store that can be imported": {"GRIB"},
	} {
		for _, m := range magic {
			if bytes.HasPrefix(head, []byte(m)) {
				return what
			}
		}
	}
	if bytes.Contains(head, []byte("opendap.org/dap/dmrpp")) {
		return "DMR++ document; VirtualiZarr with its DMRPPParser makes a reference set of it, which can be imported or linked"
	}
	return ""
}

// lacks returns the kind of place that is missing.
func (e *Env) lacks(kind Kind) string {
	if kind == File {
		return "its beginning is of no known file format"
	}
	return "the directory holds none of " + strings.Join(e.wantedFiles(), ", ")
}

// inIt names the first children of a directory, from which the reader may choose one.
func inIt(ctx context.Context, at Place) string {
	if at.Kind == File {
		return ""
	}
	l, ok := at.Dir().(kv.Lister)
	if !ok {
		return ""
	}
	var some []string
	for c, err := range kv.ListDir(ctx, l, "") {
		if err != nil {
			return ""
		}
		name := c.Name
		if c.Prefix {
			name += "/"
		}
		if some = append(some, fmt.Sprintf("%q", name)); len(some) == 6 {
			some[5] = "…"
			break
		}
	}
	if len(some) == 0 {
		return ""
	}
	return "; in it are " + strings.Join(some, ", ")
}

// look gathers evidence, and finds out whether a place is a file or a directory.
func (e *Env) look(ctx context.Context, at Place) (Evidence, Place, error) {
	if at.Kind != Directory {
		head, v, err := Head(ctx, at.View, at.Path)
		if err == nil {
			ev := Evidence{Head: head}
			at.located = v
			if at.Kind == either && len(e.matches(ev)) == 0 {
				// Keys may lie below a key. And web servers answer for a
				// directory with a page about it.
				below := at
				below.located = nil
				below.Kind, below.URL = Directory, at.URL.AsDirectory()
				if in, _, err := e.look(ctx, below); err == nil && len(e.matches(in)) > 0 {
					return in, below, nil
				}
			}
			at.Kind = File
			return ev, at, nil
		}
		if !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrInvalidKey) || at.Kind == File {
			return Evidence{}, at, err
		}
		at.Kind = Directory
		at.URL = at.URL.AsDirectory()
	}
	ev := Evidence{heads: map[string][]byte{}}
	below := at.Dir()
	names := e.wantedFiles()
	heads := make([][]byte, len(names))
	// At a time, because each may be a request to a distant server.
	err := gather.Each(ctx, len(names), len(names), func(ctx context.Context, i int) (err error) {
		heads[i], _, err = Head(ctx, below, names[i])
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return fmt.Errorf("%s: %w", names[i], err)
		}
		return nil
	})
	for i, name := range names {
		ev.heads[name] = heads[i]
	}
	if err == nil {
		err = lookAtCopy(ctx, ev, below)
	}
	return ev, at, err
}

// wantedFiles are the files of a directory that some adapter wants to know of.
func (e *Env) wantedFiles() []string {
	var names []string
	for _, a := range e.Adapters.steps {
		names = append(names, a.Files...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Head returns the beginning of a file, which is not nil. If that took one
// request, v is the file with its beginning in memory, which readers then need
// not request again; else v is nil.
func Head(ctx context.Context, view kv.Reader, key string) (head []byte, v kv.Value, err error) {
	found, head, err := kv.LocateRange(ctx, view, key, kv.Span(0, headBytes), 0)
	if err != nil {
		return nil, nil, err
	}
	if head != nil {
		return head, kv.Held(found, 0, head), nil
	}
	head, err = kv.ReadValue(ctx, found, kv.Span(0, min(headBytes, found.Size())))
	return head, nil, err
}
