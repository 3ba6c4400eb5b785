package web

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// PROPFIND is the listing of WebDAV. Depth 0 is the resource, 1 its children
// too, and infinity all keys below it.

type multistatus struct {
	XMLName   xml.Name      `xml:"multistatus"`
	Namespace string        `xml:"xmlns,attr"`
	Responses []davResponse `xml:"response"`
}

type davResponse struct {
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
	started := h.started
	switch {
	case v.Commit != nil:
		started = v.Commit.Time
	case v.Session != nil:
		started = v.Session.Engine().Info().Created
	}
	base := "/" + segment(p.db) + "/" + p.form + "/" + segment(p.rev) + "/"
	response := func(e entry, key string) davResponse {
		out := davResponse{Href: base + escape(key), Status: "HTTP/1.1 200 OK"}
		modified := started
		if e.Size != nil && v.Session != nil {
			if at, err := v.Modified(r.Context(), key); err == nil { // else it is a key of another format
				modified = at
			}
		}
		out.Prop = davProp{Modified: modified.UTC().Format(http.TimeFormat), Length: e.Size, ETag: e.ETag}
		if e.Size == nil {
			out.Prop.Kind.Collection = &struct{}{}
		}
		return out
	}
	depth := r.Header.Get("Depth")
	if depth == "" {
		depth = "infinity"
	}
	if depth != "0" && depth != "1" && depth != "infinity" {
		return httpError{http.StatusBadRequest, fmt.Errorf("the header Depth: %s: want 0, 1 or infinity", serve.Clip(depth))}
	}
	all := multistatus{Namespace: "DAV:"}
	if !p.dir {
		val, err := v.Value(r.Context(), p.key)
		if err == nil {
			size := val.Size()
			tag, err := etag(r.Context(), val)
			if err != nil {
				return err
			}
			all.Responses = append(all.Responses, response(entry{Size: &size, ETag: tag}, p.key))
			return writeXML(w, all)
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return err
		}
	}
	l := lister{v: v, prefix: dirPrefix(p.key), limit: maxEntries, sizes: true}
	if found, err := kv.Any(r.Context(), v, l.prefix); err != nil {
		return err
	} else if !found && p.key != "" {
		return kv.ErrNotFound
	}
	all.Responses = append(all.Responses, response(entry{}, l.prefix))
	list := l.children
	switch depth {
	case "0":
		return writeXML(w, all)
	case "infinity":
		list = l.keys
	}
	entries, err := list(r.Context(), "")
	if err != nil {
		return err
	}
	if len(entries) > maxEntries {
		return errManyEntries
	}
	for _, e := range entries {
		all.Responses = append(all.Responses, response(e, l.prefix+e.Name))
	}
	return writeXML(w, all)
}

func writeXML(w http.ResponseWriter, all multistatus) error {
	body, err := xml.Marshal(all)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	w.WriteHeader(http.StatusMultiStatus)
	_, _ = w.Write([]byte(strings.TrimSpace(xml.Header)))
	_, _ = w.Write(body)
	return nil
}
