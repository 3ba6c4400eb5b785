package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
)

// linkedFiles finds the files that references name. It is not safe for
// concurrent use.
type linkedFiles struct {
	set      *source.Set
	base     string // URL of the folder of the set
	validate Validate
	adapters []*Adapters     // that can read them
	own      *extent.Overlap // with the database that is linked into, nil if it is not of this machine

	inFolder bool                  // references below base were seen
	readable string                // a host, bucket or folder whose files something reads
	known    map[string]linkedFile // by URL in the set
	scheme   string                // with "://", of the URLs that came last, unless they are local
	last     string                // URL
	lastFile linkedFile

	granted   refs.Rules // rules for reading
	folder    string     // of the last absolute URL that it may not
	forbidden []string   // prefixes to allow, at most MaxForbidden
}

// MaxForbidden is the most prefixes that [ImportResult].Forbidden has.
const MaxForbidden = 16

// compare notes where an absolute URL leads if reading may not follow it, and would if
// that was allowed.
func (f *linkedFiles) compare(abs string) {
	folder := abs[:strings.LastIndexByte(abs, '/')+1]
	if folder == f.folder || len(f.forbidden) == MaxForbidden || f.base != "" && strings.HasPrefix(abs, f.base) {
		return
	}
	if _, err := f.granted.Resolve(abs); !errors.Is(err, refs.ErrForbidden) {
		return // another file of the folder may be
	}
	f.folder = strings.Clone(folder)
	origin := refs.Origin(abs)
	_, err := refs.Rules{Allow: []string{origin}}.Resolve(abs)
	if err == nil && source.Readable(abs, f.adapters...) == nil && !slices.Contains(f.forbidden, origin) {
		f.forbidden = append(f.forbidden, origin)
	}
}

// linkedFile is a file that references name.
type linkedFile struct {
	src    tree.Source
	size   int64    // -1 if it is not known
	now    kv.Stamp // if size is not -1, unless mapped
	mapped bool     // size is the size of the file to which a mapping leads
	at     refs.Place
	gone   bool // there is no such file at this place
}

// ErrNotHere marks the refusal to link a reference that cannot be followed
// here: its file is missing or too short, or no adapter and no mapping is for
// its scheme. The set may be right elsewhere, and [ValidateNone] links it.
var ErrNotHere = errors.New("engine: not found from here")

// notHereError is an error that is also ErrNotHere.
type notHereError struct{ error }

func (e notHereError) Unwrap() error        { return e.error }
func (e notHereError) Is(target error) bool { return target == ErrNotHere }

// check makes sure that a part of the file can be there, in the version that the set
// asks for.
func (f *linkedFile) check(offset, length int64, condition string) error {
	if f.size >= 0 && !f.mapped {
		if err := f.now.Meets(condition); err != nil {
			return notHereError{fmt.Errorf("%s: %w", redact.URL(f.src.URL), err)}
		}
	}
	switch {
	case offset > tree.MaxExtent || length > tree.MaxExtent:
		return fmt.Errorf("%w: %d bytes from %d on: no file is so long", ErrUnreachable, length, offset)
	case f.gone:
		return notHereError{&refs.MissingError{Place: f.at}}
	case f.size >= 0 && (offset > f.size || length > f.size-offset):
		return notHereError{fmt.Errorf("%w: %d bytes from %d on, of a file of %d", ErrUnreachable, length, offset, f.size)}
	}
	return nil
}

// virtual returns the virtual value that a reference stands for, if its file can be
// there.
func (f *linkedFiles) virtual(r *refs.Reference) (src tree.Source, offset, length uint64, err error) {
	file, err := f.of(r.URL)
	if err == nil {
		err = file.check(r.Offset, r.Length, r.Condition)
	}
	if err != nil {
		return src, 0, 0, err
	}
	src = file.src
	if r.Condition != "" { // of the set, else the version that was seen
		src.Validator = r.Condition
	}
	if r.Whole() {
		src.Whole = true
		return src, 0, 0, nil
	}
	return src, uint64(r.Offset), uint64(r.Length), nil
}

// maxKnownURLs bounds the number of remembered files.
const maxKnownURLs = 1 << 16

// of returns the file of a URL, valid until the next call; where its version
// counts, ask has found it.
func (f *linkedFiles) of(url string) (*linkedFile, error) {
	if url == f.last && url != "" {
		return &f.lastFile, nil
	}
	if f.asks(url) {
		f.lastFile = f.known[url]
	} else {
		src, err := f.source(url)
		if err != nil {
			return nil, err
		}
		f.lastFile = linkedFile{src: src, size: -1}
	}
	f.last = url
	return &f.lastFile, nil
}

// asks reports whether the version of a file is recorded.
func (f *linkedFiles) asks(url string) bool {
	switch f.validate {
	case ValidateAll:
		return true
	case ValidateLocal:
		// A relative URL is as local as the set, and a mapping may lead to a file of this machine.
		if rules := f.set.Rules(); len(rules.Map) > 0 {
			if at, err := rules.Resolve(url); err == nil && at.Mapped {
				return strings.HasPrefix(at.Root, "file:")
			}
		}
		return !f.remote(url) && (strings.HasPrefix(url, "/") || strings.HasPrefix(url, "file:") ||
			strings.Contains(url, "://") || strings.HasPrefix(f.base, "file:"))
	}
	return false
}

// remote reports whether a URL is absolute and of no file of this machine.
func (f *linkedFiles) remote(url string) bool {
	if f.scheme != "" && strings.HasPrefix(url, f.scheme) {
		return true // mostly it has the scheme of the one before
	}
	at := strings.Index(url, "://")
	if at < 0 || strings.HasPrefix(url, "file:") || refs.Scheme(url[:at]) == "file" {
		return false
	}
	f.scheme = strings.Clone(url[:at+len("://")])
	return true
}

// ask finds the files of those URLs of which the version counts, asking for
// several versions at a time. URL i belongs to key i; empty ones to none.
func (f *linkedFiles) ask(ctx context.Context, n int, url, key func(i int) string) error {
	if len(f.known) > maxKnownURLs {
		clear(f.known)
	}
	var urls []string
	var files []linkedFile
	last := ""
	for i := range n {
		url := url(i)
		if url == last {
			continue
		}
		last = url
		if url == "" || !f.asks(url) {
			continue
		}
		if _, ok := f.known[url]; ok {
			continue
		}
		url = strings.Clone(url) // it is a part of a larger string
		src, err := f.source(url)
		if err != nil {
			return keyFailed(key(i), err)
		}
		if f.known == nil {
			f.known = map[string]linkedFile{}
		}
		file := linkedFile{src: src, size: -1}
		f.known[url] = file
		urls, files = append(urls, url), append(files, file)
	}
	err := gather.Each(ctx, virtual.Requests, len(urls), func(ctx context.Context, i int) error {
		return f.version(ctx, urls[i], &files[i])
	})
	for i, url := range urls {
		f.known[url] = files[i]
	}
	return err
}

// source makes a URL absolute. An absolute URL keeps its spelling.
func (f *linkedFiles) source(url string) (tree.Source, error) {
	abs := url
	switch {
	case f.remote(url) || strings.Contains(url, "://"):
		if err := f.checkReadable(url); err != nil {
			return tree.Source{}, err
		}
	case strings.HasPrefix(url, "/"):
		abs = "file://" + url
	case f.base == virtual.Inside:
		return tree.Source{}, fmt.Errorf("%w: %q is relative to a set that no URL names; import it without linking", ErrForbidden, redact.URL(url))
	default:
		at, err := refs.Rules{Base: f.base}.Resolve(url)
		if err != nil {
			return tree.Source{}, err
		}
		abs = at.URL()
	}
	if err := f.notOwn(abs); err != nil {
		return tree.Source{}, err
	}
	f.compare(abs)
	f.inFolder = f.inFolder || strings.HasPrefix(abs, f.base)
	return tree.Source{URL: abs}, nil
}

// notOwn refuses an absolute URL that leads into the database itself.
func (f *linkedFiles) notOwn(abs string) error {
	local := strings.HasPrefix(abs, "file:")
	if f.own == nil || !local && len(f.set.Rules().Map) == 0 {
		return nil
	}
	places := []string{abs}
	if at, err := f.set.Rules().Resolve(abs); err == nil && at.Mapped {
		places = append(places, at.URL())
	}
	for _, place := range places {
		u, err := source.ReferredURL(place)
		if err != nil {
			continue // nothing can be read there
		}
		if lies, err := extent.Of(u.Root()); err == nil && f.own.With(lies) != nil {
			return fmt.Errorf("%s: %w: it lies in the database itself, where gc may remove it; import it without linking", lies, ErrOverlap)
		}
	}
	return nil
}

// checkReadable makes sure that an adapter here reads an absolute URL, or its
// mapped form.
func (f *linkedFiles) checkReadable(url string) error {
	name := strings.LastIndexByte(url, '/') + 1
	mapped := len(f.granted.Map) > 0 // which may lead from each folder elsewhere
	known := f.readable != "" && strings.HasPrefix(url, f.readable) && (!mapped || f.readable == url[:name])
	// A name such as "..", a chain or a broken escape makes a URL unreadable beside readable ones.
	plain := name < len(url) && url[name] != '.' && !strings.Contains(url, "::") && !strings.Contains(url, "%")
	if f.validate == ValidateNone || known && plain {
		return nil
	}
	scheme, _, _ := strings.Cut(url, "://")
	at, err := refs.Rules{Map: f.granted.Map, Allow: []string{scheme + "://"}}.Resolve(url)
	leads := url
	if err == nil {
		leads = at.URL()
	}
	if unread := source.Readable(leads, f.adapters...); unread != nil {
		err = unread
	}
	if err != nil {
		return notHereError{err}
	}
	if f.readable = strings.Clone(url[:name]); !mapped {
		host := len(scheme) + len("://")
		f.readable = f.readable[:host+strings.IndexByte(f.readable[host:], '/')+1]
	}
	return nil
}

// version asks for the version and the size of a file. It finds nothing out of a file
// that may not be followed or cannot be reached. Of a file to which a mapping leads it
// takes the size only: its version is not the version of the file at the URL.
func (f *linkedFiles) version(ctx context.Context, url string, file *linkedFile) error {
	at, err := f.set.Rules().Resolve(url)
	if err != nil {
		return nil
	}
	v, err := f.set.Files().OpenAt(ctx, at)
	switch {
	case err == nil && at.Mapped:
		file.mapped, file.size = true, v.Size()
	case err == nil:
		file.src.Validator, file.size, file.now = virtual.ValidatorOf(v), v.Size(), kv.StampOf(v)
	case errors.Is(err, kv.ErrNotFound) && ctx.Err() == nil:
		file.at, file.gone = at, true
	}
	return ctx.Err()
}
