package web

import (
	"encoding/xml"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// PROPFIND is the listing of WebDAV. Depth 0 is the resource, 1 its children
// too, and infinity, the default, all keys below it.

type davResponse struct {
	XMLName xml.Name `xml:"response"`

	Href string  `xml:"href"`
	Prop davProp `xml:"propstat>prop"`
	// Status is always 200: the properties exist.
	Status string `xml:"propstat>status"`
}

type davProp struct {
	Modified string  `xml:"getlastmodified"`
	Length   *int64  `xml:"getcontentlength,omitempty"`
	ETag     string  `xml:"getetag,omitempty"`
	Kind     davKind `xml:"resourcetype"` // clients require it for values too
}

type davKind struct {
	Collection *struct{} `xml:"collection,omitempty"`
}

// propfind answers PROPFIND below a version.
func (h *handler) propfind(w http.ResponseWriter, r *http.Request, v *serve.View, p place) error {
	self, key := entry{}, dirPrefix(p.key)
	list := func(func(entry, error) bool) {}
	if !p.dir {
		val, err := v.Value(r.Context(), p.key)
		if err == nil {
			size := val.Size()
			self.Size, key = &size, p.key
			self.ETag, err = etag(r.Context(), val)
		}
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
	}
	if self.Size == nil {
		if found, err := kv.Any(r.Context(), v, key); err != nil {
			return err
		} else if !found && p.key != "" {
			return kv.ErrNotFound
		}
		l := lister{v: v, prefix: key, sizes: true}
		if list = l.children(r.Context(), ""); r.Header.Get("Depth") != "1" {
			list = l.keys(r.Context(), "")
		}
	}
	started := h.started
	switch {
	case v.Commit != nil:
		started = v.Commit.Time
	case v.Session != nil:
		started = v.Session.Engine().Info().Created
	}
	base := "/" + serve.EscapeSegment(p.db) + "/" + p.form + "/" + serve.EscapeSegment(swapInNames(p.rev, "/", ":")) + "/" + serve.EscapePath(key)
	return multistatus(w, r, base, self, list, func(e entry) time.Time {
		if e.Size != nil && v.Session != nil {
			if at, _, err := v.Written(r.Context(), key+e.Name); err == nil { // else it is a key of another format
				return at
			}
		}
		return started
	})
}

// multistatus answers PROPFIND of a resource at a path with the entries below it, whose
// names are relative.
func multistatus(w http.ResponseWriter, r *http.Request, path string, self entry, below iter.Seq2[entry, error], modified func(entry) time.Time) error {
	depth := r.Header.Get("Depth")
	if depth != "" && depth != "0" && depth != "1" && depth != "infinity" {
		return httpError{http.StatusBadRequest, fmt.Errorf("the header Depth: %s: want 0, 1 or infinity", serve.Clip(depth))}
	}
	path = forwardedPrefix(r) + path // links cannot be relative here
	entries := func(yield func(entry, error) bool) {
		if yield(self, nil) && depth != "0" {
			below(yield)
		}
	}
	return writeLong(w, r, "application/xml; charset=utf-8", func(yield func([]byte, error) bool) {
		if !yield([]byte(strings.TrimSpace(xml.Header)+`<multistatus xmlns="DAV:">`), nil) {
			return
		}
		for e, err := range entries {
			out := davResponse{Href: path + serve.EscapePath(e.Name), Status: "HTTP/1.1 200 OK"}
			out.Prop = davProp{Modified: modified(e).UTC().Format(http.TimeFormat), Length: e.Size, ETag: e.ETag}
			if e.Size == nil {
				out.Prop.Kind.Collection = &struct{}{}
			}
			b, xmlErr := xml.Marshal(out)
			if !yield(b, errors.Join(err, xmlErr)) {
				return
			}
		}
		yield([]byte("</multistatus>"), nil)
	})
}
