package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// entry is one line of a listing: a key, or a prefix of keys if Name ends in a
// slash.
type entry struct {
	Name string `json:"name"`
	Size *int64 `json:"size,omitempty"`
	ETag string `json:"etag,omitempty"`
}

// listing is a directory as JSON.
type listing struct {
	Path    string  `json:"path"`
	Commit  string  `json:"commit,omitempty"`
	Entries []entry `json:"entries"`
	// Next is the "after" of the next page; empty on the last page.
	Next string `json:"next,omitempty"`
}

// Bounds of listings.
const (
	pageEntries = 1000    // of JSON, unless a limit is given
	maxEntries  = 100_000 // of an answer that cannot be continued
)

var errManyEntries = httpError{http.StatusRequestEntityTooLarge,
	fmt.Errorf("more than %d entries: list them in pages, as JSON with ?limit= and ?after=", maxEntries)}

// directory answers GET and HEAD of a directory.
func (h *handler) directory(w http.ResponseWriter, r *http.Request, v *serve.View, p place) error {
	q := r.URL.Query()
	l := lister{v: v, prefix: dirPrefix(p.key), limit: maxEntries}
	if wantsHTML(r) {
		entries, err := l.children(r.Context(), "")
		switch {
		case err != nil:
			return err
		case len(entries) == 0 && p.key != "":
			return kv.ErrNotFound
		case len(entries) > maxEntries:
			return errManyEntries
		}
		return writeIndex(w, r, "/"+escape(p.db)+"/"+p.form+"/"+p.rev+"/"+l.prefix, entries)
	}
	l.limit, l.sizes = pageEntries, true
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxEntries {
			return httpError{http.StatusBadRequest, fmt.Errorf("limit=%s: want a number from 1 to %d", serve.Clip(text), maxEntries)}
		}
		l.limit = n
	}
	list := l.children
	if q.Has("recursive") {
		list = l.keys
	}
	entries, err := list(r.Context(), q.Get("after"))
	if err != nil {
		return err
	}
	if len(entries) == 0 && p.key != "" && !q.Has("after") {
		return kv.ErrNotFound
	}
	out := listing{Path: p.key, Entries: entries}
	if v.Commit != nil {
		out.Commit = v.Commit.ID.String()
	}
	if len(entries) > l.limit {
		out.Entries = entries[:l.limit]
		out.Next = entries[l.limit-1].Name
	}
	return writeJSON(w, r, out)
}

// lister lists the entries below a prefix, up to one more than the limit.
type lister struct {
	v      *serve.View
	prefix string
	limit  int
	sizes  bool
}

// children lists the direct children of the prefix that come after an entry. A
// name that is both a key and a prefix gives two entries.
func (l *lister) children(ctx context.Context, after string) ([]entry, error) {
	entries := []entry{}
	name, isDir := strings.CutSuffix(after, "/")
	for e, err := range kv.ListDir(ctx, l.v, l.prefix) {
		if err != nil {
			return nil, err
		}
		if e.Name < name || e.Name == name && (isDir || !e.Prefix) {
			continue // before the page; no name is empty
		}
		out := entry{Name: e.Name}
		if e.Prefix {
			out.Name += "/"
		}
		if entries = append(entries, out); len(entries) > l.limit {
			break
		}
	}
	return l.complete(ctx, entries)
}

// keys lists all keys below the prefix, relative to it.
func (l *lister) keys(ctx context.Context, after string) ([]entry, error) {
	entries := []entry{}
	o := kv.ListOptions{Prefix: l.prefix}
	if after != "" {
		o.After = l.prefix + after
	}
	for key, err := range l.v.List(ctx, o) {
		if err != nil {
			return nil, err
		}
		if entries = append(entries, entry{Name: key[len(l.prefix):]}); len(entries) > l.limit {
			break
		}
	}
	return l.complete(ctx, entries)
}

// complete adds sizes, and leaves out keys that are not served.
func (l *lister) complete(ctx context.Context, entries []entry) ([]entry, error) {
	kept := entries[:0]
	for i, e := range entries {
		if !strings.HasSuffix(e.Name, "/") && i < l.limit && (l.sizes || serve.CarriesCopies(e.Name)) {
			val, err := l.v.Value(ctx, l.prefix+e.Name)
			if errors.Is(err, kv.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			size := val.Size()
			e.Size = &size
			if id := val.ID(); id != (kv.ID{}) {
				e.ETag, _ = etag(ctx, val) // without reading the value
			}
		}
		kept = append(kept, e)
	}
	return kept, nil
}

func dirPrefix(key string) string {
	if key == "" {
		return ""
	}
	return key + "/"
}

// wantsHTML reports whether the request does not ask for JSON.
func wantsHTML(r *http.Request) bool {
	q := r.URL.Query()
	if q.Has("limit") || q.Has("after") || q.Has("recursive") {
		return false
	}
	return !strings.Contains(r.Header.Get("Accept"), "application/json")
}

// writeIndex writes a page of links in the usual form of web servers: relative,
// one on each line.
func writeIndex(w http.ResponseWriter, r *http.Request, title string, entries []entry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>Index of %s</title></head>\n<body><h1>Index of %[1]s</h1><hr><pre>\n<a href=\"../\">../</a>\n", html.EscapeString(title))
	for _, e := range entries {
		fmt.Fprintf(&b, "<a href=\"%s\">%s</a>", html.EscapeString(link(e.Name)), html.EscapeString(e.Name))
		if e.Size != nil {
			fmt.Fprintf(&b, "  %d", *e.Size)
		}
		b.WriteByte('\n')
	}
	b.WriteString("</pre><hr></body></html>\n")
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Vary", "Accept")
	return writeReport(w, r, "text/html; charset=utf-8", []byte(b.String()))
}

// link is a name as a relative reference: a colon would end a scheme.
func link(name string) string {
	name, isDir := strings.CutSuffix(name, "/")
	name = strings.ReplaceAll(segment(name), ":", "%3A")
	if isDir {
		name += "/"
	}
	return name
}

func writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	return writeReport(w, r, "application/json", append(b, '\n'))
}
