package web

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/zarrdb/zarrdb/serve"
)

// reply answers a request, or returns an error that is then the answer.
type reply func(http.ResponseWriter, *http.Request) error

// handle adds a route below /-/.
func (h *handler) handle(pattern string, fn reply) {
	h.server.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := fn(w, r); err != nil {
			h.fail(w, r, err)
		}
	})
}

// routes are what is below /-/.
func (h *handler) routes() {
	h.handle("GET /-/api/names", func(w http.ResponseWriter, r *http.Request) error {
		names := h.t.Names()
		if names == nil {
			names = []string{}
		}
		return writeJSON(w, r, names)
	})
	for _, kind := range serve.Reports() {
		h.handle("GET /-/api/"+kind, func(w http.ResponseWriter, r *http.Request) error { return h.report(w, r, kind) })
	}
	h.handle("GET /-/api/read", h.read)
	h.sessionRoutes()
	h.server.HandleFunc("/-/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, httpError{http.StatusNotFound, fmt.Errorf("%s: nothing is here", clip(r.URL.Path))})
	})
}

// report answers with what a command line prints as JSON. Several values become a
// list.
func (h *handler) report(w http.ResponseWriter, r *http.Request, kind string) error {
	q := r.URL.Query()
	in := serve.Report{Kind: kind, Rev: q.Get("rev"), To: q.Get("to"), Path: q.Get("path"), Values: q.Has("values")}
	if text := q.Get("n"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxEntries {
			return httpError{http.StatusBadRequest, fmt.Errorf("n=%s: it is a number from 1 to %d", clip(text), maxEntries)}
		}
		in.Number = n
	}
	b, lines, err := h.t.Report(r.Context(), q.Get("db"), in)
	if err != nil {
		return err
	}
	if lines {
		b = listOf(b)
	}
	return writeReport(w, r, "application/json", b)
}

// listOf makes a JSON list of values on lines.
func listOf(lines []byte) []byte {
	out := []byte{'['}
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',', '\n')
		}
		out = append(out, line...)
	}
	return append(out, ']', '\n')
}
