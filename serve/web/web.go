// Package web serves the databases and targets of a [serve.Table] over HTTP.
//
//	/DB/v/REV/key        a value: GET, HEAD, ranges, conditions; in a session PUT and DELETE
//	/DB/v2/REV/key       the same as Zarr v2, /DB/v3/… as v3, if that needs no copy
//	/DB/v/REV/dir/       a listing: an index page, JSON, or PROPFIND
//	/-/api/…             reports, decoded arrays and sessions as JSON
//	/-/ui/               a page for people; see package page
//	/-/health            the server runs; /-/ready: it can use each database
//
// REV is any revision of the command line, escaped as one segment, or "~" and the
// id of a session. Every Zarr program that reads over HTTP can open
// http://HOST/DB/v/REV.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/metrics"
	"github.com/zarrdb/zarrdb/serve/pace"
	"github.com/zarrdb/zarrdb/serve/page"
	"github.com/zarrdb/zarrdb/zarr"
)

// Options configure [New]. With the zero value every request is refused: set
// Authenticate, Anonymous or both.
type Options struct {
	// Authenticate returns the sender of a request, nil without credentials. An
	// error refuses the request and must not quote credentials.
	Authenticate func(r *http.Request) (*serve.Principal, error)
	// Anonymous is the principal of requests without credentials; nil refuses
	// them.
	Anonymous *serve.Principal
	// ReadOnly refuses every write, even with keys that allow it.
	ReadOnly bool
	// Owner means that every client owns the databases. An administrator sees all sessions
	// and the space that a collection would free, with ReadOnly too.
	Owner bool
	// Local means that only this machine can connect. Requests for other host
	// names are refused: web pages could send them by DNS rebinding.
	Local bool
	// Origins lists the origins of web pages that may read; "*" allows all.
	// Default: all, because a page needs a key like other clients; for a Local
	// server, only pages of this machine.
	Origins []string
	// Requests bounds the requests that are answered at a time; default 256.
	// Further requests get status 503.
	Requests int
	// BodyBytes bounds a value that is written; default 1 GiB.
	BodyBytes int64
	// ReadBytes bounds the elements of a decoded read; default 64 MiB.
	ReadBytes int64
	// Targets are what commands of this machine call what is served, by its name. Clients see them.
	Targets map[string]string
	// Tables are the forms of decoded reads as tables, by the name of the format, such as
	// "parquet".
	Tables map[string]Table
	// Metrics counts requests; nil makes one for /-/metrics.
	Metrics *metrics.Set
	// Log gets a line for each write and for each failure of the server; nil
	// discards them.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Requests <= 0 {
		o.Requests = 256
	}
	if o.BodyBytes <= 0 {
		o.BodyBytes = 1 << 30
	}
	if o.ReadBytes <= 0 {
		o.ReadBytes = 64 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New()
	}
	return o
}

type handler struct {
	t       *serve.Table
	o       Options
	started time.Time
	server  *http.ServeMux // of paths below /-/
	page    http.Handler
	slots   chan struct{}
	windows chan struct{} // one for each window that is read

	memory budget
}

// New returns a handler for everything that t serves.
func New(t *serve.Table, o Options) http.Handler {
	h := &handler{t: t, o: o.withDefaults(), started: time.Now()}
	h.slots = make(chan struct{}, h.o.Requests)
	h.windows = make(chan struct{}, windowSlots)
	h.memory.left.Store(2 * h.o.BodyBytes)
	h.server = http.NewServeMux()
	h.page = page.Handler("/-/ui/")
	h.routes()
	h.server.HandleFunc("GET /-/ready", h.ready)
	h.server.HandleFunc("GET /-/health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	})
	return h
}

// readyTime bounds the look at the databases.
const readyTime = 5 * time.Second

// ready answers whether each database can be used, or the one of the query. Names and reasons are for clients that
// may read.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	_, unknown := h.who(r)
	status, text := http.StatusOK, ""
	names := h.t.Names()
	if one := r.URL.Query().Get("db"); one != "" {
		names = []string{one}
	}
	errs := h.t.Check(ctx, names)
	for _, name := range names {
		state := "ok"
		if err := errs[name]; err != nil {
			status, state = http.StatusServiceUnavailable, cmp.Or(serve.Unavailable(err), unready(err))
			h.o.Log.WarnContext(ctx, "not ready", "database", name, "error", err)
		}
		text += name + ": " + state + "\n"
	}
	switch {
	case unknown == nil:
	case status == http.StatusOK:
		text = "ok\n"
	default:
		text = "not ready\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// unready is the reason of an error that [serve.Unavailable] has no text for.
func unready(err error) string {
	switch {
	case errors.Is(err, serve.ErrNoDatabase):
		return "there is no database of that name"
	case errors.Is(err, context.DeadlineExceeded):
		return "it does not answer in time"
	}
	return "requests fail; the log of the server has the reason"
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := pace.NewWriter(w, r)
	begun := time.Now()
	defer func() { h.o.Metrics.Observe(r.Context(), routeOf(r), out.Status, out.Bytes, time.Since(begun)) }()
	w = out
	if r.Body != nil {
		r.Body = pace.Body(w, r.Body)
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.allowOrigin(w, r)
	if err := h.checkHost(r); err != nil {
		h.fail(w, r, err)
		return
	}
	if r.Method == http.MethodOptions {
		h.options(w)
		return
	}
	if r.URL.Path == "/-/health" || r.URL.Path == "/-/ready" {
		h.server.ServeHTTP(w, r)
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		h.fail(w, r, httpError{http.StatusServiceUnavailable, errors.New("too many requests at a time; try again")})
		return
	}
	if err := h.route(w, r); err != nil {
		h.fail(w, r, err)
	}
}

// checkHost refuses names of other machines on a local server.
func (h *handler) checkHost(r *http.Request) error {
	if !h.o.Local || r.Host == "" || serve.Loopback(r.Host) {
		return nil
	}
	return httpError{http.StatusMisdirectedRequest, errors.New("this server answers on this machine only, by the names localhost and 127.0.0.1; behind a proxy with TLS, start it with --behind-tls-proxy, or let the proxy send Host: localhost")}
}

// who returns the sender of a request.
func (h *handler) who(r *http.Request) (*serve.Principal, error) {
	var who *serve.Principal
	if h.o.Authenticate != nil {
		var err error
		if who, err = h.o.Authenticate(r); err != nil {
			return nil, httpError{http.StatusUnauthorized, err}
		}
	}
	if who == nil {
		who = h.o.Anonymous
	}
	if who == nil {
		return nil, errUnauthorized
	}
	metrics.Sender(r.Context(), who.Name)
	if h.o.ReadOnly && !h.o.Owner && (who.Admin || len(who.Write) > 0) {
		who = &serve.Principal{Name: who.Name}
	}
	return who, nil
}

// route answers a request by its path.
func (h *handler) route(w http.ResponseWriter, r *http.Request) error {
	escaped := mergeSlashes(r.URL.EscapedPath())
	who, err := h.who(r)
	if err != nil {
		return err
	}
	if escaped == "/-" {
		return toDirectory(w, r)
	}
	if strings.HasPrefix(escaped, "/-/") {
		u := *r.URL // without slashes that the mux would redirect away from a proxy's prefix
		u.Path, u.RawPath = mergeSlashes(u.Path), mergeSlashes(u.RawPath)
		r = withPrincipal(r, who)
		r.URL = &u
		h.server.ServeHTTP(w, r)
		return nil
	}
	p, err := parsePath(escaped)
	if err != nil {
		return err
	}
	read := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == "PROPFIND"
	switch {
	case p.rev == "" && read:
		return h.above(w, r, p)
	case (r.Method == http.MethodPut || r.Method == http.MethodDelete) && p.rev != "":
		return h.write(w, r, who, p)
	case !read:
		w.Header().Set("Allow", readMethods)
		return httpError{http.StatusMethodNotAllowed, fmt.Errorf("%s: not here", serve.Clip(r.Method))}
	}
	v, err := h.t.View(r.Context(), who, p.db, p.rev)
	if err != nil {
		return err
	}
	defer v.Release()
	if format := formats[p.form]; format != 0 {
		if v, err = v.In(format); err != nil {
			return err
		}
	}
	describe(w, v, p.rev)
	switch {
	case r.Method == "PROPFIND":
		return h.propfind(w, r, v, p)
	case p.key == "" && !p.dir:
		return toDirectory(w, r)
	case p.dir:
		return h.directory(w, r, v, p)
	}
	return h.value(w, r, v, p)
}

// describe names the version in the header of the response. Only a full commit id is that
// version for ever.
func describe(w http.ResponseWriter, v *serve.View, rev string) {
	head := w.Header()
	head.Set("Cache-Control", "no-cache")
	if v.Commit != nil {
		id := v.Commit.ID.String()
		head.Set("Zarrdb-Commit", id)
		if rev == id {
			head.Set("Cache-Control", "private, max-age=31536000, immutable")
		}
	}
}

// toDirectory redirects to the same path with a slash behind it.
func toDirectory(w http.ResponseWriter, r *http.Request) error {
	path := mergeSlashes(r.URL.EscapedPath())
	name := strings.LastIndexByte(path, '/') + 1
	to := strings.ReplaceAll(path[name:], ":", "%3A") + "/" // relative, for proxies that serve it elsewhere; a colon would end a scheme
	if strings.Contains(path[:name], "%") {
		to = forwardedPrefix(r) + path[:name] + to // aiohttp decodes the path that a relative one is joined to
	}
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", to)
	w.Header().Set("Content-Length", "0") // also for HEAD
	w.WriteHeader(http.StatusMovedPermanently)
	return nil
}

// formats are the formats of the mounts beside v, which serves stored keys.
var formats = map[string]zarr.Version{"v2": zarr.V2, "v3": zarr.V3}

// above lists the levels above versions: databases, branches and tags.
func (h *handler) above(w http.ResponseWriter, r *http.Request, p place) error {
	names, title := h.t.Names(), "/"
	if p.db != "" {
		var err error
		if names, err = h.t.Versions(r.Context(), p.db, true); err != nil {
			return err
		}
		if title += p.db + "/"; p.form == "" {
			names = []string{"v", "v2", "v3"}
		} else {
			title += p.form + "/"
		}
	}
	entries := []entry{}
	for _, name := range names {
		entries = append(entries, entry{Name: strings.ReplaceAll(name, "/", ":") + "/"})
	}
	all := func(yield func(entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
	switch {
	case r.Method == "PROPFIND":
		return multistatus(w, r, serve.EscapePath(title), entry{}, all, func(entry) time.Time { return h.started })
	case !p.dir:
		return toDirectory(w, r)
	case wantsHTML(r):
		return writeIndex(w, r, title, all)
	}
	return writeJSON(w, r, listing{Path: strings.Trim(title, "/"), Entries: entries})
}

// readMethods are the methods of every path.
const readMethods = "GET, HEAD, OPTIONS, PROPFIND"

// allowOrigin allows web pages to read, according to Options.Origins.
func (h *handler) allowOrigin(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	head := w.Header()
	switch {
	case slices.Contains(h.o.Origins, "*"), len(h.o.Origins) == 0 && !h.o.Local:
		head.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(h.o.Origins, origin), len(h.o.Origins) == 0 && localOrigin(origin):
		head.Set("Access-Control-Allow-Origin", origin)
		head.Add("Vary", "Origin")
	default:
		head.Add("Vary", "Origin")
		return
	}
	head.Set("Access-Control-Expose-Headers", "ETag, Content-Range, Content-Length, Accept-Ranges, Zarrdb-Commit")
	if r.Method == http.MethodOptions {
		head.Set("Access-Control-Allow-Methods", readMethods+", PUT, DELETE, POST")
		head.Set("Access-Control-Allow-Headers", "Authorization, Range, If-Match, If-None-Match, If-Range, Content-Type, Depth, Zarrdb-Commit")
		head.Set("Access-Control-Max-Age", "86400")
		head.Set("Access-Control-Allow-Private-Network", "true") // a page of the internet may read from an address of this network
	}
}

// localOrigin reports whether a page comes from this machine.
func localOrigin(origin string) bool {
	host, ok := strings.CutPrefix(origin, "http://")
	if !ok {
		host, ok = strings.CutPrefix(origin, "https://")
	}
	return ok && serve.Loopback(host)
}

// options answers OPTIONS, for any path.
func (h *handler) options(w http.ResponseWriter) {
	w.Header().Set("Allow", readMethods+", PUT, DELETE, POST")
	w.WriteHeader(http.StatusNoContent)
}
