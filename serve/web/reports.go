package web

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// maxReport bounds a report, in bytes.
const maxReport = 32 << 20

// question is a request for a report about a version, or about a node in it.
type question struct {
	*http.Request
	db   *engine.DB
	id   txn.CommitID
	path string // "" is the root
}

// reportRoutes adds /-/api/NAME for each report; see package report. The answer is the output of
// the command of that name with --json, its lines as a list.
func (h *handler) reportRoutes() {
	h.ofNode("info", func(ctx context.Context, s *engine.Source) ([]byte, error) { return one(report.Describe(ctx, s)) })
	h.ofNode("ls", func(ctx context.Context, s *engine.Source) ([]byte, error) {
		return list(report.Nodes(report.Members(ctx, s, false)))
	})
	h.ofNode("tree", func(ctx context.Context, s *engine.Source) ([]byte, error) {
		return list(report.Nodes(report.Members(ctx, s, true)))
	})
	h.ofVersion("show", false, func(ctx context.Context, q question) ([]byte, error) {
		c, err := q.db.Versions().Lookup(ctx, q.id)
		if err != nil {
			return nil, err
		}
		return one(report.NewCommit(c), nil)
	})
	h.ofVersion("log", true, func(ctx context.Context, q question) ([]byte, error) {
		n, err := number(q.FormValue("n"), "n", maxEntries, 100)
		if err != nil {
			return nil, err
		}
		if q.Form.Has("all") {
			return list(report.LogAll(ctx, q.db, int(n)))
		}
		return list(report.Log(ctx, q.db, q.id, q.path, false, int(n)))
	})
	h.ofVersion("diff", true, func(ctx context.Context, q question) ([]byte, error) {
		to, err := q.db.Resolve(ctx, q.FormValue("to"))
		if err != nil {
			return nil, err
		}
		return list(report.Diff(ctx, q.db, q.id, to, q.path, q.Form.Has("values")))
	})
	h.ofVersion("blame", true, func(ctx context.Context, q question) ([]byte, error) {
		return list(report.Blame(ctx, q.db, q.id, q.path, zarr.Selection{}))
	})
	h.ofVersion("stats", false, func(ctx context.Context, q question) ([]byte, error) { return one(q.db.Stats(ctx, q.id.String())) })
	h.ofVersion("branch", false, func(ctx context.Context, q question) ([]byte, error) {
		return list(report.Refs(ctx, q.db, false))
	})
	h.ofVersion("tag", false, func(ctx context.Context, q question) ([]byte, error) {
		return list(report.Refs(ctx, q.db, true))
	})
}

// mostFound is the most arrays that find answers with.
const mostFound = 2000

// find answers with the arrays whose paths have a word, the first ones, and how many there are:
//
//	/-/api/find?db=w&rev=main&word=temp
func (h *handler) find(r *http.Request) ([]byte, error) {
	v, err := h.t.View(r.Context(), principal(r), r.FormValue("db"), r.FormValue("rev"))
	if err != nil {
		return nil, err
	}
	defer v.Release()
	s, err := engine.OpenViewSource(v.ReadLister, r.FormValue("db"), "", nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	word, count := strings.ToLower(r.FormValue("word")), 0
	out := struct {
		Count int   `json:"count"`
		Nodes []any `json:"nodes"`
	}{Nodes: []any{}}
	only := func(yield func(report.Member, error) bool) {
		for m, err := range report.Members(r.Context(), s, true) {
			if err == nil && (!m.IsArray() || !strings.Contains(strings.ToLower(m.Node.Path()), word)) {
				continue
			}
			if count++; count > mostFound && err == nil {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
	for n, err := range report.Nodes(only) {
		if err != nil {
			return nil, err
		}
		out.Nodes = append(out.Nodes, n)
	}
	out.Count = count
	return one(out, nil)
}

// ofNode adds the route of a report about a node of a version, a session or a target.
func (h *handler) ofNode(name string, answer func(context.Context, *engine.Source) ([]byte, error)) {
	h.report(name, func(r *http.Request) ([]byte, error) {
		v, err := h.t.View(r.Context(), principal(r), r.FormValue("db"), r.FormValue("rev"))
		if err != nil {
			return nil, err
		}
		defer v.Release()
		s, err := engine.OpenViewSource(v.ReadLister, r.FormValue("db"), r.FormValue("path"), nil)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return answer(r.Context(), s)
	})
}

// ofVersion adds the route of a report about a version or, if it may have a path, a node in it.
func (h *handler) ofVersion(name string, node bool, answer func(context.Context, question) ([]byte, error)) {
	h.report(name, func(r *http.Request) (_ []byte, err error) {
		q := question{Request: r, path: strings.Trim(r.FormValue("path"), "/")}
		if q.path != "" && !node {
			return nil, httpError{http.StatusBadRequest, fmt.Errorf("%s: it is about the whole version, leave out path=%s", name, serve.Clip(q.path))}
		}
		if q.db, err = h.t.Database(r.Context(), r.FormValue("db")); err != nil {
			return nil, err
		}
		if q.id, err = q.db.Resolve(r.Context(), r.FormValue("rev")); err != nil {
			return nil, err
		}
		return answer(r.Context(), q)
	})
}

// report adds the route of a report.
func (h *handler) report(name string, answer func(*http.Request) ([]byte, error)) {
	h.handle("GET /-/api/"+name, func(w http.ResponseWriter, r *http.Request) error {
		body, err := answer(r)
		if err != nil {
			return err
		}
		return writeReport(w, r, "application/json", body)
	})
}

// one encodes a report of one value.
func one[T any](v T, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	text, err := report.JSON(v, "  ")
	return []byte(text), err
}

// list encodes a report of many values.
func list[T any](values iter.Seq2[T, error]) ([]byte, error) {
	out := []byte{'['}
	for v, err := range values {
		if err != nil {
			return nil, err
		}
		text, err := report.JSON(v, "")
		switch {
		case err != nil:
			return nil, err
		case len(out)+len(text) > maxReport:
			return nil, fmt.Errorf("report: more than %d MiB: %w", maxReport>>20, kv.ErrTooLarge)
		case len(out) > 1:
			out = append(out, ",\n"...)
		}
		out = append(out, strings.TrimSuffix(text, "\n")...)
	}
	return append(out, "]\n"...), nil
}
