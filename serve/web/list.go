package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"iter"
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

// Bounds of a page of JSON.
const (
	pageEntries = 1000 // unless a limit is given
	maxEntries  = 100_000
)

// directory answers GET and HEAD of a directory.
func (h *handler) directory(w http.ResponseWriter, r *http.Request, v *serve.View, p place) error {
	q := r.URL.Query()
	l := lister{v: v, prefix: dirPrefix(p.key)}
	if wantsHTML(r) {
		return writeIndex(w, r, "/"+p.db+"/"+p.form+"/"+p.rev+"/"+l.prefix, func(yield func(entry, error) bool) {
			for e, err := range l.children(r.Context(), "") {
				if !yield(e, err) {
					return
				}
			}
			if !l.exists && p.key != "" {
				yield(entry{}, kv.ErrNotFound)
			}
		})
	}
	limit := pageEntries
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxEntries {
			return httpError{http.StatusBadRequest, fmt.Errorf("limit=%s: want a number from 1 to %d", serve.Clip(text), maxEntries)}
		}
		limit = n
	}
	l.sizes = true
	list := l.children
	if q.Has("recursive") {
		list = l.keys
	}
	out := listing{Path: p.key, Entries: []entry{}}
	for e, err := range list(r.Context(), q.Get("after")) {
		if err != nil {
			return err
		}
		if len(out.Entries) == limit {
			out.Next = out.Entries[limit-1].Name
			break
		}
		out.Entries = append(out.Entries, e)
	}
	if !l.exists && p.key != "" && !q.Has("after") {
		return kv.ErrNotFound
	}
	if v.Commit != nil {
		out.Commit = v.Commit.ID.String()
	}
	return writeJSON(w, r, out)
}

// lister lists the entries below a prefix that are served and that a path can name. It
// holds one entry at a time.
type lister struct {
	v      *serve.View
	prefix string
	sizes  bool // of keys
	exists bool // some key begins with the prefix, also one that is not listed
}

// children lists the direct children of the prefix that come after an entry. A
// name that is both a key and a prefix gives two entries.
func (l *lister) children(ctx context.Context, after string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		name, isDir := strings.CutSuffix(after, "/")
		for e, err := range kv.ListDir(ctx, l.v, l.prefix) {
			if err == nil && (e.Name < name || e.Name == name && (isDir || !e.Prefix)) {
				continue // before the page
			}
			if e.Prefix {
				e.Name += "/"
			}
			if !l.emit(ctx, e.Name, err, yield) {
				return
			}
		}
	}
}

// keys lists all keys below the prefix, relative to it.
func (l *lister) keys(ctx context.Context, after string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		o := kv.ListOptions{Prefix: l.prefix}
		if after != "" {
			o.After = l.prefix + after
		}
		for key, err := range l.v.List(ctx, o) {
			if !l.emit(ctx, strings.TrimPrefix(key, l.prefix), err, yield) {
				return
			}
		}
	}
}

// emit yields a name with its size, or an error. It skips keys that are not served, and
// returns whether to continue.
func (l *lister) emit(ctx context.Context, name string, err error, yield func(entry, error) bool) bool {
	l.exists = l.exists || err == nil
	e := entry{Name: name}
	names := strings.Split(strings.TrimSuffix(name, "/"), "/")
	switch isDir := strings.HasSuffix(name, "/"); {
	case err != nil:
	case !serve.InPath(names...):
		return true
	case !isDir && (l.sizes || serve.CarriesCopies(name)):
		var val kv.Value
		if val, err = l.v.Value(ctx, l.prefix+name); errors.Is(err, kv.ErrNotFound) {
			return true
		}
		if err == nil {
			size := val.Size()
			e.Size = &size
			if id := val.ID(); id != (kv.ID{}) {
				e.ETag, _ = etag(ctx, val) // without reading the value
			}
		}
	}
	return yield(e, err) && err == nil
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

// writeIndex writes a page of links in the usual form of web servers: relative, one on
// each line. It has no link to the directory above, so that clients that follow all links
// stay below. The root leads to the page for people by a button, which such clients do not
// follow.
func writeIndex(w http.ResponseWriter, r *http.Request, title string, entries iter.Seq2[entry, error]) error {
	head := w.Header()
	policy, button := "default-src 'none'; sandbox", ""
	if title == "/" {
		policy, button = "default-src 'none'; form-action 'self'; sandbox allow-forms", "<form action=\"-/ui/\"><button>Show as pictures, with history</button></form>"
	}
	head.Set("Content-Security-Policy", policy)
	head.Add("Vary", "Accept")
	return writeLong(w, r, "text/html; charset=utf-8", func(yield func([]byte, error) bool) {
		b := fmt.Appendf(nil, "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>Index of %s</title></head>\n<body><h1>Index of %[1]s</h1><hr><pre>\n", html.EscapeString(title))
		for e, err := range entries {
			b = fmt.Appendf(b, "<a href=\"%s\">%s</a>", serve.EscapePath(e.Name), html.EscapeString(e.Name))
			if e.Size != nil {
				b = fmt.Appendf(b, "  %d", *e.Size)
			}
			if !yield(append(b, '\n'), err) {
				return
			}
			b = b[:0]
		}
		yield(append(b, "</pre><hr>"+button+"</body></html>\n"...), nil)
	})
}

func writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	return writeReport(w, r, "application/json", append(b, '\n'))
}
