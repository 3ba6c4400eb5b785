package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

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
	// Info is of the node and of the levels of its pyramid, by path, and Axes of the array that is drawn with its axes,
	// the finest. What cannot be described is not there: the request for it alone says why.
	Info map[string]json.RawMessage `json:"info"`
	Axes map[string]axesJSON        `json:"axes"`
}

// mostStart is the most levels of a pyramid that start describes.
const mostStart = 16

// startAtATime is how many of them are described at a time.
const startAtATime = 4

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
	path := strings.Trim(q.Get("path"), "/")
	node := describeNode(ctx, v, s.DB, path)
	all := []report.Node{node}
	if levels := node.Levels; len(levels) > 0 {
		all = make([]report.Node, 1+min(len(levels), mostStart))
		all[0] = node
		var some errgroup.Group
		some.SetLimit(startAtATime)
		for i := range all[1:] {
			some.Go(func() error {
				all[1+i] = describeNode(ctx, v, s.DB, levels[i])
				return nil
			})
		}
		_ = some.Wait()
	}
	finest, most := "", -1.0
	for i, n := range all {
		if n.NodeType == "" {
			continue
		}
		at := path
		if i > 0 {
			at = node.Levels[i-1]
		}
		if s.Info[at], err = one(n, nil); err != nil {
			delete(s.Info, at)
			continue
		}
		size := 1.0
		for _, length := range n.Shape {
			size *= float64(length)
		}
		if n.NodeType == "array" && n.Error == "" && size > most {
			finest, most = at, size
		}
	}
	if most >= 0 {
		if o, err := h.openIn(r, v, finest); err == nil {
			s.Axes[finest] = axesOf(ctx, o)
		}
	}
	return writeJSON(w, r, s)
}

// describeNode describes a node; NodeType is "" of one that cannot be described.
func describeNode(ctx context.Context, v *serve.View, db, path string) report.Node {
	src, err := engine.OpenViewSource(v.ReadLister, db, path, nil)
	if err != nil {
		return report.Node{}
	}
	defer src.Close()
	n, err := report.Describe(ctx, src)
	if err != nil {
		return report.Node{}
	}
	return n
}
