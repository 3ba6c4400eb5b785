package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/refs"
)

// Mapping replaces the prefix From of the URLs of references by To.
type Mapping = refs.Mapping

// ErrForbidden means that the reader does not allow the target of a reference.
var ErrForbidden = refs.ErrForbidden

// ErrUnreachable means that the bytes which a reference names do not exist.
var ErrUnreachable = refs.ErrUnreachable

// MissingError is ErrUnreachable because a file is missing; it has the place.
type MissingError = refs.MissingError

// IsForbidden reports whether an error means that [Follow] does not allow the
// target of a reference or symbolic link.
func IsForbidden(err error) bool {
	return errors.Is(err, ErrForbidden) || errors.Is(err, dirkv.ErrOutside)
}

// Follow says where references may lead, beside the folder of their set: below
// the targets of mappings, and below allowed prefixes. Both are written as in
// reference sets: "s3://bucket/a", "/data/a" or "file:///data/a", not
// percent-encoded. "s3://" allows a whole scheme. The zero Follow allows nothing.
type Follow struct {
	// Map rewrites URLs before anything else; of several prefixes that fit, the
	// longest counts.
	Map []Mapping
	// Allow lists further prefixes. Into folders of this machine among them, symbolic
	// links of a directory that is read may lead, too.
	Allow []string
}

// folders are the folders of this machine that are allowed: symbolic links of stores
// may lead there.
func (f Follow) folders() []string {
	var out []string
	for _, prefix := range f.Allow {
		at, err := refs.Rules{Allow: []string{"file://"}}.Resolve(strings.TrimSuffix(prefix, "/") + "/x")
		if err != nil || !strings.HasPrefix(at.Root, "file://") {
			continue // a server
		}
		if u, err := ReferredURL(strings.TrimSuffix(at.URL(), "x")); err == nil {
			if dir, err := u.Root().OSPath(); err == nil {
				out = append(out, dir)
			}
		}
	}
	return out
}

// Rules returns the rules for references outside of sets.
func (f Follow) Rules() refs.Rules { return f.rules("") }

// rules returns the rules for a reference set in the folder base. base is "" for a set without a folder.
func (f Follow) rules(base string) refs.Rules {
	return refs.Rules{Base: base, Map: f.Map, Allow: f.Allow}
}

// Check returns an error if a prefix is invalid.
func (f Follow) Check() error {
	_, err := f.rules("").Resolve("file:///")
	if err == nil || errors.Is(err, refs.ErrForbidden) {
		return nil
	}
	return err
}

// With returns f with the rules of more added. Of two mappings of one prefix,
// the mapping of f is used.
func (f Follow) With(more Follow) Follow {
	out := Follow{Map: slices.Clone(f.Map), Allow: slices.Clone(f.Allow)}
	for _, a := range more.Allow {
		if !slices.Contains(out.Allow, a) {
			out.Allow = append(out.Allow, a)
		}
	}
	for _, m := range more.Map {
		if !slices.ContainsFunc(out.Map, func(o Mapping) bool { return o.From == m.From }) {
			out.Map = append(out.Map, m)
		}
	}
	return out
}

// reference opens the file that a reference leads to: a path below a root, as
// rules resolved it. It may read rng of it, see [kv.LocateRange].
func (e *Env) reference(ctx context.Context, root, path string, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	if strings.ContainsAny(path, "%?") && isWeb(root) {
		// Servers read these characters in different ways: the URL goes to the
		// server unchanged.
		return e.wholeURL(ctx, root+path, rng, limit)
	}
	view, err := e.below(ctx, root)
	if err == nil {
		var v kv.Value
		var b []byte
		if v, b, err = kv.LocateRange(ctx, view, path, rng, limit); err == nil {
			return v, b, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = kv.ErrNotFound
	}
	return nil, nil, err
}

func isWeb(url string) bool {
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}

// below returns the store of everything below a root, which stays open.
func (e *Env) below(ctx context.Context, root string) (kv.Reader, error) {
	if err := e.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer e.opening.Unlock()
	if view := e.roots[root]; inPlace(view) {
		return view, nil
	}
	at, err := e.openReferred(ctx, root)
	if err != nil {
		return nil, err
	}
	if at.Kind == File {
		return nil, fmt.Errorf("%w: it is a file, not a folder", ErrFormat)
	}
	view := at.Dir()
	if e.roots == nil {
		e.roots = map[string]kv.Reader{}
	}
	e.roots[root] = view
	return view, nil
}

// inPlace reports whether a store was opened that its URL still names. Another
// folder may have replaced a local one. Reads that use the old store continue, and
// it is closed with the other stores.
func inPlace(view kv.Reader) bool {
	folder, ok := view.(*dirkv.Store)
	return view != nil && (!ok || folder.InPlace())
}

func (e *Env) wholeURL(ctx context.Context, url string, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	at, err := e.openReferred(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	if at.Value == nil && at.Kind != Directory && at.Kind != dataset {
		return kv.LocateRange(ctx, at.View, at.Path, rng, limit)
	}
	v, err := at.File(ctx)
	return v, nil, err
}

// openReferred opens a URL that is written as in reference sets.
func (e *Env) openReferred(ctx context.Context, url string) (Place, error) {
	u, err := ReferredURL(url)
	if err != nil {
		return Place{}, err
	}
	return e.Open(context.WithValue(ctx, ofReference{}, true), u)
}

// ReferredURL makes a pipeline of a URL as references have it, in which nothing is
// escaped.
func ReferredURL(url string) (zurl.URL, error) {
	if path, ok := strings.CutPrefix(url, "file://"); ok {
		if filepath.Separator == '\\' {
			path = strings.TrimPrefix(path, "/") // of /c:/x
		}
		return zurl.File(filepath.FromSlash(path))
	}
	escapes := strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23", "|", "%7C")
	if isWeb(url) {
		escapes = strings.NewReplacer("#", "%23", "|", "%7C")
	}
	return zurl.Parse(escapes.Replace(url))
}

// Readable reports why none of the adapters opens a URL that is written as in reference
// sets. Errors: [ErrFormat].
func Readable(url string, adapters ...*Adapters) error {
	scheme, _, _ := strings.Cut(url, "://")
	scheme = refs.Scheme(scheme)
	if !slices.ContainsFunc(adapters, func(a *Adapters) bool { return a.HasRoot(scheme) }) {
		return unknownScheme(url)
	}
	if _, err := ReferredURL(url); err != nil {
		if scheme == "memory" {
			return fmt.Errorf("%w: %s: memory:// is the memory of the program that wrote the set, which nothing here reads", ErrFormat, redact.URL(url))
		}
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}

// azure are the schemes of Azure Blob Storage, in which a container may be followed by "@"
// and a host that begins with the name of the account.
var azure = []string{"az", "abfs", "abfss", "adl", "wasb", "wasbs"}

// unknownScheme is the error of a URL whose scheme nothing reads.
func unknownScheme(url string) error {
	scheme, rest, _ := strings.Cut(url, "://")
	if !slices.Contains(azure, strings.ToLower(scheme)) {
		return fmt.Errorf("%w: unknown scheme %q of %s", ErrFormat, scheme, redact.URL(url))
	}
	root, _, _ := strings.Cut(rest, "/")
	container, account, _ := strings.Cut(root, "@")
	if strings.Contains(container, ":") || strings.Contains(account, "@") { // a user and password
		root = root[strings.LastIndexByte(root, '@')+1:]
		container, account = root, ""
	}
	if account, _, _ = strings.Cut(account, "."); account == "" {
		account = "ACCOUNT"
	}
	return fmt.Errorf("%w: %s: Azure Blob Storage (%s) is not read; a public container is read over HTTPS, as https://%s.blob.core.windows.net/%s/, and references with --url-map %s://%s/=https://%s.blob.core.windows.net/%s/",
		ErrFormat, redact.URL(url), scheme, account, container, scheme, root, account, container)
}

// referred prints the root of a pipeline as reference sets do; ok is false for
// schemes that they do not have.
func referred(p zurl.Part) (url string, ok bool) {
	switch {
	case p.Scheme == "file":
		path, err := p.OSPath()
		if err != nil {
			return "", false
		}
		path = filepath.ToSlash(path)
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		return "file://" + path, true
	case p.Host == "":
		return "", false
	case p.Scheme == "http" || p.Scheme == "https":
		return p.Scheme + "://" + p.Host + p.Path, true
	}
	key, err := p.Key()
	return p.Scheme + "://" + p.Host + "/" + key, err == nil
}

// PlainURL spells the root of a URL pipeline as reference sets do, without
// escapes.
func PlainURL(url string) (string, error) {
	u, err := zurl.Parse(url)
	if err != nil {
		return "", err
	}
	plain, ok := referred(u.Root())
	if !ok || len(u.Adapters()) > 0 {
		return "", fmt.Errorf("%w: %s: references do not lead there", ErrFormat, zurl.Redact(url))
	}
	return plain, nil
}

// follows returns the rules of a set in the folder base: the prefixes that the opener
// allows, and the prefixes that this machine remembers.
func (e *Env) follows(base string) (refs.Rules, error) {
	follow := e.Follow
	if e.Recall != nil {
		more, err := e.Recall()
		if err != nil {
			return refs.Rules{}, err
		}
		follow = follow.With(more)
	}
	return follow.rules(base), nil
}

// Resolver returns a reader of the virtual values of a database, or of a set
// whose relative URLs are relative to the folder base.
func (e *Env) Resolver(base string, folder kv.Reader) *virtual.Resolver {
	return virtual.New(virtual.Storage{Open: e.reference, Below: e.below}, folder, func() (refs.Rules, error) { return e.follows(base) })
}
