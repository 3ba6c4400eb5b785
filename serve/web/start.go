package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/serve"
)

// startJSON is all that the page asks before it draws: the answers of other requests at one commit.
type startJSON struct {
	Names    []string        `json:"names"`
	DB       string          `json:"db"` // the first name if the request has none
	Target   string          `json:"target"`
	Versions bool            `json:"versions"` // whether it is a database
	Branches json.RawMessage `json:"branches,omitempty"`
	Tags     json.RawMessage `json:"tags,omitempty"`
	Head     *report.Commit  `json:"head,omitempty"`
	Colours  []scaleJSON     `json:"colours"`
	// Info and Axes are of the node, of the arrays of its pyramid, and of the groups above, by path. What cannot be
	// described is not there: the request for it alone says why.
	Info map[string]json.RawMessage `json:"info"`
	Axes map[string]axesJSON        `json:"axes"`
}

// mostStart is the most levels of a pyramid that start describes.
const mostStart = 16

// start answers with what the page has to know for its first picture:
//
//	/-/api/start?db=w&rev=main&path=temp
func (h *handler) start(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	s := startJSON{Names: h.t.Names(), DB: q.Get("db"), Colours: scales(), Info: map[string]json.RawMessage{}, Axes: map[string]axesJSON{}}
	if s.DB == "" && len(s.Names) > 0 {
		s.DB = s.Names[0]
	}
	if s.DB == "" {
		return httpError{http.StatusNotFound, errors.New("nothing is served")}
	}
	s.Target = h.o.Targets[s.DB]
	db, err := h.t.Database(ctx, s.DB)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	rev := ""
	if err == nil {
		id, err := db.Resolve(ctx, q.Get("rev"))
		if err != nil {
			return err
		}
		c, err := db.Versions().Lookup(ctx, id)
		if err != nil {
			return err
		}
		head := report.NewCommit(c)
		s.Versions, s.Head, rev = true, &head, id.String()
		if s.Branches, err = list(report.Refs(ctx, db, false)); err != nil {
			return err
		}
		if s.Tags, err = list(report.Refs(ctx, db, true)); err != nil {
			return err
		}
	}
	v, err := h.t.View(ctx, principal(r), s.DB, rev)
	if err != nil {
		return err
	}
	defer v.Release()
	levels := h.startNode(r, v, &s, strings.Trim(q.Get("path"), "/"))
	for _, path := range levels[:min(len(levels), mostStart)] {
		h.startNode(r, v, &s, path)
	}
	return writeJSON(w, r, s)
}

// startNode adds a node, and returns the paths of the levels of its pyramid.
func (h *handler) startNode(r *http.Request, v *serve.View, s *startJSON, path string) []string {
	src, err := engine.OpenViewSource(v.ReadLister, s.DB, path, nil)
	if err != nil {
		return nil
	}
	defer src.Close()
	n, err := report.Describe(r.Context(), src)
	if err != nil {
		return nil
	}
	if s.Info[path], err = one(n, nil); err != nil {
		delete(s.Info, path)
		return nil
	}
	if n.NodeType == "array" && n.Error == "" {
		if o, err := h.openIn(r, v, path); err == nil {
			s.Axes[path] = axesOf(r.Context(), o)
		}
	}
	return n.Levels
}
