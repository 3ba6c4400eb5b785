package web

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/metrics"
)

// reply answers a request, or returns an error, which the caller sends.
type reply func(http.ResponseWriter, *http.Request) error

// handle adds a route below /-/.
func (h *handler) handle(pattern string, fn reply) {
	h.server.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := fn(w, r); err != nil {
			h.fail(w, r, err)
		}
	})
}

// routes adds the routes below /-/.
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
	h.handle("GET /-/metrics", h.metrics)
	h.sessionRoutes()
	h.server.HandleFunc("/-/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, httpError{http.StatusNotFound, fmt.Errorf("%s: no such page", serve.Clip(r.URL.Path))})
	})
}

// report answers with the JSON output of a command. Several values become a
// list.
func (h *handler) report(w http.ResponseWriter, r *http.Request, kind string) error {
	q := r.URL.Query()
	in := serve.Report{Kind: kind, Rev: q.Get("rev"), To: q.Get("to"), Path: q.Get("path"), Values: q.Has("values")}
	if text := q.Get("n"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxEntries {
			return httpError{http.StatusBadRequest, fmt.Errorf("n=%s: want a number from 1 to %d", serve.Clip(text), maxEntries)}
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

// routeOf is the kind of a request, for metrics.
func routeOf(r *http.Request) string {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, sessionPath):
		return "sessions"
	case path == "/-/api/read":
		return "read"
	case strings.HasPrefix(path, "/-/api/"):
		return "report"
	case strings.HasPrefix(path, "/-"):
		return "server"
	case r.Method == http.MethodPut || r.Method == http.MethodDelete:
		return "write"
	case r.Method == "PROPFIND" || strings.HasSuffix(path, "/"):
		return "list"
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return "value"
	}
	return "other"
}

// metrics answers with counts in the text format of Prometheus.
func (h *handler) metrics(w http.ResponseWriter, _ *http.Request) error {
	c := h.t.Counts()
	values := h.cacheValues()
	care := h.t.CareErrors()
	for _, name := range slices.Sorted(maps.Keys(care)) {
		values = append(values, metrics.Value{
			Name: "zarrdb_care_errors", Help: "Kinds of background work that failed and have not succeeded since.", Type: "gauge",
			Labels: []string{"database", name}, Value: float64(len(care[name])),
		})
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	return h.o.Metrics.Print(w, append(values, []metrics.Value{
		{Name: "zarrdb_commits_total", Help: "Commits of clients.", Type: "counter", Value: float64(c.Commits)},
		{Name: "zarrdb_conflicts_total", Help: "Commits of clients that failed with a conflict.", Type: "counter", Value: float64(c.Conflicts)},
		{Name: "zarrdb_requests_active", Help: "Requests that are being answered.", Type: "gauge", Value: float64(len(h.slots))},
		{Name: "zarrdb_databases", Help: "Databases and targets that are served.", Type: "gauge", Value: float64(len(h.t.Names()))},
	}...))
}

// cacheValues describes the caches of decoded chunks. Values of one name follow each
// other.
func (h *handler) cacheValues() (values []metrics.Value) {
	stats := h.t.Caches()
	for _, kind := range []struct {
		name, help, kind string
		of               func(s engine.CacheStats) int64
	}{
		{"zarrdb_chunk_cache_hits_total", "Decoded chunks that were found in the cache.", "counter", func(s engine.CacheStats) int64 { return s.Hits }},
		{"zarrdb_chunk_cache_misses_total", "Decoded chunks that were not in the cache.", "counter", func(s engine.CacheStats) int64 { return s.Misses }},
		{"zarrdb_chunk_cache_bytes", "Size of the decoded chunks in the cache.", "gauge", func(s engine.CacheStats) int64 { return s.Bytes }},
	} {
		for _, name := range slices.Sorted(maps.Keys(stats)) {
			values = append(values, metrics.Value{
				Name: kind.name, Help: kind.help, Type: kind.kind, Labels: []string{"database", name}, Value: float64(kind.of(stats[name])),
			})
		}
	}
	return values
}
