package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
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
	h.handle("GET /-/api/target", func(w http.ResponseWriter, r *http.Request) error {
		return writeJSON(w, r, h.o.Targets[r.URL.Query().Get("db")])
	})
	h.report("find", h.find)
	h.reportRoutes()
	h.handle("GET /-/api/read", h.read)
	h.handle("GET /-/api/axes", h.axes)
	h.handle("GET /-/api/coast", h.coast)
	h.handle("GET /-/api/index", h.index)
	h.handle("GET /-/api/labels", h.labels)
	h.handle("GET /-/api/point", h.point)
	h.handle("GET /-/api/series", h.series)
	h.handle("GET /-/api/figure", h.figure)
	h.handle("GET /-/api/thumb", h.thumb)
	h.handle("GET /-/api/window", h.window)
	h.handle("GET /-/api/colours", func(w http.ResponseWriter, r *http.Request) error { return writeJSON(w, r, scales()) })
	h.handle("GET /-/api/start", h.start)
	h.handle("GET /-/api/garbage", h.garbage)
	h.server.Handle("GET /-/metrics", h.o.Metrics.Handler(h.collect))
	h.server.Handle("GET /-/ui/", h.page)
	h.handle("GET /-/ui", toDirectory)
	h.sessionRoutes()
	h.server.HandleFunc("/-/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, httpError{http.StatusNotFound, fmt.Errorf("%s: no such page", serve.Clip(r.URL.Path))})
	})
}

// readers are the paths of requests that read elements.
var readers = []string{"/-/api/read", "/-/api/window", "/-/api/series", "/-/api/point", "/-/api/axes", "/-/api/coast", "/-/api/index", "/-/api/labels", "/-/api/figure", "/-/api/thumb"}

// routeOf is the kind of a request, for metrics.
func routeOf(r *http.Request) string {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, sessionPath):
		return "sessions"
	case slices.Contains(readers, path):
		return "read"
	case strings.HasPrefix(path, "/-/api/"):
		return "report"
	case strings.HasPrefix(path, "/-/ui"):
		return "page"
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

// collect puts the counts that /-/metrics prints beside the counts of requests.
func (h *handler) collect(put func(name, help, database string, value float64)) {
	c := h.t.Counts()
	put("zarrdb_commits_total", "Commits of clients.", "", float64(c.Commits))
	put("zarrdb_conflicts_total", "Commits of clients that failed with a conflict.", "", float64(c.Conflicts))
	put("zarrdb_requests_active", "Requests that are being answered.", "", float64(len(h.slots)))
	put("zarrdb_databases", "Databases and targets that are served.", "", float64(len(h.t.Names())))
	memory := engine.UsedMemory()
	put("zarrdb_memory_bytes", "Memory that caches and buffers of all databases take.", "", float64(memory.Used))
	put("zarrdb_memory_limit_bytes", "Memory that they may take.", "", float64(memory.Limit))
	for name, kinds := range h.t.CareErrors() {
		put("zarrdb_care_errors", "Kinds of background work that failed and have not succeeded since.", name, float64(len(kinds)))
	}
	for name, s := range h.t.Caches() {
		put("zarrdb_chunk_cache_hits_total", "Decoded chunks that were found in the cache.", name, float64(s.Hits))
		put("zarrdb_chunk_cache_misses_total", "Decoded chunks that were not in the cache.", name, float64(s.Misses))
		put("zarrdb_chunk_cache_bytes", "Size of the decoded chunks in the cache.", name, float64(s.Bytes))
	}
}
