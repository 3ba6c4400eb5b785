package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/kv"
)

// Listing lists the keys of one server. Its methods implement a view that can be
// listed.
type Listing struct {
	// Name names the server in errors.
	Name string
	// Page asks for one page.
	Page func(ctx context.Context, q Query) (*Page, error)
	// Valid returns nil for a key of the view. Servers may list others, such as
	// names that end in a slash to show a directory.
	Valid func(key string) error
}

var (
	_ kv.Lister    = Listing{}
	_ kv.DirLister = Listing{}
)

// Query asks for a page of a listing.
type Query struct {
	Prefix string
	// After is a hint: keys up to it need not be listed.
	After string
	// Delimited asks for direct children of Prefix only.
	Delimited bool
	// Token is Page.Next of the page before.
	Token string
}

// Parameters sets what q asks for in a query of a bucket, whose service has other names for
// all but "prefix" and "delimiter".
func (q Query) Parameters(query url.Values, after, token string) {
	for name, value := range map[string]string{"prefix": q.Prefix, after: q.After, token: q.Token} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Delimited {
		query.Set("delimiter", "/")
	}
}

// Page is a part of a listing.
type Page struct {
	// Keys are in byte order, also from page to page.
	Keys []string
	// Prefixes are common prefixes of keys, up to a slash.
	Prefixes []string
	// Next is the token of the next page, "" for the last page.
	Next string
}

// maxEmpty is the largest number of consecutive pages without a key. Servers
// send some after many deletions.
const maxEmpty = 1000

// errEndless means that a listing does not end and yields no further keys.
var errEndless = errors.New("the server announces further keys but does not send them")

func (l Listing) pages(ctx context.Context, q Query) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		empty := 0
		for {
			p, err := l.Page(ctx, q)
			if err != nil {
				yield(nil, fmt.Errorf("list %s: %w", l.Name, err))
				return
			}
			if !yield(p, nil) || p.Next == "" {
				return
			}
			if empty++; len(p.Keys)+len(p.Prefixes) > 0 {
				empty = 0
			}
			if p.Next == q.Token || empty > maxEmpty {
				yield(nil, fmt.Errorf("list %s: %w: %w", l.Name, ErrAnswer, errEndless))
				return
			}
			q.Token = p.Next
		}
	}
}

// checkEvery is how many keys are yielded between two looks at the context.
const checkEvery = 256

// List implements [kv.Lister]. It holds one page.
func (l Listing) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var q Query
		q.Prefix, q.After = listArguments(opts)
		n, last := 0, ""
		for p, err := range l.pages(ctx, q) {
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range p.Keys {
				if n++; n%checkEvery == 0 && ctx.Err() != nil {
					yield("", ctx.Err())
					return
				}
				if !strings.HasPrefix(key, q.Prefix) || key <= last {
					yield("", fmt.Errorf("list %s: %w: %.200q after %.200q, asked for keys that begin with %.200q", l.Name, ErrAnswer, key, last, q.Prefix))
					return
				}
				last = key
				if key <= opts.After || !strings.HasPrefix(key, opts.Prefix) || l.Valid(key) != nil {
					continue
				}
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// ListDir implements [kv.DirLister]. It holds the names of one directory,
// because servers order them otherwise: "a-b" comes before "a/".
func (l Listing) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		entries, err := l.dir(ctx, prefix)
		if err != nil {
			yield(kv.DirEntry{}, err)
			return
		}
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (l Listing) dir(ctx context.Context, prefix string) ([]kv.DirEntry, error) {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		return nil, fmt.Errorf("%w: prefix %.200q of a directory does not end with a slash", kv.ErrInvalidKey, prefix)
	}
	if text, _ := sendable(prefix); text != prefix {
		return nil, nil // no key is below it
	}
	var entries []kv.DirEntry
	last := "" // in byte order
	for p, err := range l.pages(ctx, Query{Prefix: prefix, Delimited: true}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if names := slices.Concat(p.Keys, p.Prefixes); len(names) > 0 {
			// A server that sends pages again would do so for ever.
			most := slices.Max(names)
			if most <= last {
				return nil, fmt.Errorf("list %s: %w: a page up to %.200q after one up to %.200q", l.Name, ErrAnswer, most, last)
			}
			last = most
		}
		if len(entries) > maxDir {
			return nil, fmt.Errorf("list %s: %w: directory %.200q has more than %d entries", l.Name, kv.ErrTooLarge, prefix, maxDir)
		}
		for _, key := range p.Keys {
			if name, ok := strings.CutPrefix(key, prefix); ok && !strings.Contains(name, "/") && l.Valid(key) == nil {
				entries = append(entries, kv.DirEntry{Name: name})
			}
		}
		for _, below := range p.Prefixes {
			if name, ok := strings.CutPrefix(below, prefix); ok && strings.Count(name, "/") == 1 && strings.HasSuffix(name, "/") {
				entries = append(entries, kv.DirEntry{Name: name[:len(name)-1], Prefix: true})
			}
		}
	}
	slices.SortFunc(entries, func(a, b kv.DirEntry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), rank(a)-rank(b))
	})
	return slices.Compact(entries), nil
}

// maxDir bounds the entries of a directory, which are held.
var maxDir = 16 << 20 // tests make it small

// rank orders a key before a prefix of the same name.
func rank(e kv.DirEntry) int {
	if e.Prefix {
		return 1
	}
	return 0
}

// listArguments converts a listing's options to text for the server. An option
// may end within a character; the server then lists more than is wanted, never
// less.
func listArguments(opts kv.ListOptions) (prefix, after string) {
	prefix, _ = sendable(opts.Prefix)
	after, cut := sendable(opts.After)
	if cut > 0xf4 {
		// No character begins with that byte, so it bounds all keys that begin
		// with the text before it. This bound is valid text.
		after += string(utf8.MaxRune)
	}
	return prefix, after
}

// sendable returns the beginning of s that is text without NUL, and the byte
// behind it, 0 if that is all.
func sendable(s string) (text string, cut byte) {
	for i, r := range s {
		if r == 0 || r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return s[:i], s[i]
		}
	}
	return s, 0
}
