// Package s3 serves the databases and targets of a [serve.Table] to S3 clients.
//
//	bucket             a database
//	REV/key            a value: REV is a branch, tag or commit, escaped as one
//	                   segment of a URL
//	~SESSION/key       the same in an open session, which can be written
//
// A request is authenticated, then the table of routes picks its function; see routes.go.
// Package auth has the keys. ETags are content ids in the form of multipart
// uploads, not MD5. User metadata of objects is not stored.
package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/auth"
	"github.com/zarrdb/zarrdb/serve/metrics"
	"github.com/zarrdb/zarrdb/serve/pace"
	"github.com/zarrdb/zarrdb/txn"
)

// Options configure [New].
type Options struct {
	// Keys verifies signatures: the name of a key is the access key id, its secret the
	// secret access key. nil serves Anonymous only.
	Keys *auth.Keys
	// Anonymous is the principal of requests without a signature if Keys is nil;
	// nil refuses them. With Keys their line anonymous is used.
	Anonymous *serve.Principal
	// ReadOnly refuses every write.
	ReadOnly bool
	// Local means that only this machine can connect. Requests without a signature for
	// other host names are refused: web pages could send them by DNS rebinding. Without
	// Keys they are refused always.
	Local bool
	// Requests bounds the requests that are answered at a time; default 256.
	Requests int
	// BodyBytes bounds an object that is written; default 4 GiB.
	BodyBytes int64
	// SpoolBytes bounds the bytes of temporary files, which hold objects until
	// they are complete; default 16 GiB. SpoolDir is their folder; default
	// [os.TempDir].
	SpoolBytes int64
	SpoolDir   string
	// Metrics counts requests; nil counts none.
	Metrics *metrics.Set
	// Log gets a line for each write, refused signature and failure of the server;
	// nil discards them.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Requests <= 0 {
		o.Requests = 256
	}
	if o.BodyBytes <= 0 {
		o.BodyBytes = 4 << 30
	}
	if o.SpoolBytes <= 0 {
		o.SpoolBytes = 16 << 30
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Handler serves S3. Close it to remove unfinished uploads.
type Handler struct {
	t     *serve.Table
	o     Options
	slots chan struct{}
	spool *spool
	sums  *sums

	started time.Time
	now     func() time.Time

	mu      sync.Mutex
	uploads map[string]*upload
}

// New returns a handler for everything that t serves, with buckets in the path.
func New(t *serve.Table, o Options) *Handler {
	h := &Handler{t: t, o: o.withDefaults(), started: time.Now(), now: time.Now, sums: newSums(), uploads: map[string]*upload{}}
	h.slots = make(chan struct{}, h.o.Requests)
	h.spool = &spool{dir: h.o.SpoolDir, limit: h.o.SpoolBytes}
	return h
}

// call is one request.
type call struct {
	*Handler
	w      http.ResponseWriter
	r      *http.Request
	q      url.Values
	ctx    context.Context
	who    *serve.Principal
	claim  *claim // nil without a signature
	bucket string
	object string // REV/key or ~SESSION/key
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		// net/http omits it for empty bodies. Then botocore takes the answer for a refusal,
		// and waits for a minute on the next answer of the connection.
		w.WriteHeader(http.StatusContinue)
	}
	out := pace.NewWriter(w, r)
	w = out
	if h.o.Metrics != nil {
		begun := time.Now()
		defer func() { h.o.Metrics.Observe(r.Context(), "s3", out.Status, out.Bytes, time.Since(begun)) }()
	}
	w.Header().Set("Server", "zarrdb")
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Body = pace.Body(w, r.Body)
	c := &call{Handler: h, w: w, r: r, ctx: r.Context()}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		c.fail(&apiError{http.StatusServiceUnavailable, "SlowDown", "too many requests at a time; try again"})
		return
	}
	if err := c.answer(); err != nil {
		c.fail(err)
	}
}

// answer answers a request, or returns why not.
func (c *call) answer() (err error) {
	r := c.r
	if r.Method == http.MethodOptions {
		return &apiError{http.StatusForbidden, "AccessDenied", "web pages read over HTTP, not S3"}
	}
	if c.q, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return &apiError{http.StatusBadRequest, "InvalidURI", "the query of the URL cannot be read"}
	}
	if c.who, c.claim, err = c.authenticate(r, c.q); err != nil {
		return err
	}
	metrics.Sender(c.ctx, c.who.Name)
	if c.o.ReadOnly && (c.who.Admin || len(c.who.Write) > 0) {
		c.who = &serve.Principal{Name: c.who.Name}
	}
	c.bucket, c.object, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if len(c.object) > serve.MaxKey {
		return &apiError{http.StatusBadRequest, "KeyTooLongError", fmt.Sprintf("a key has at most %d bytes", serve.MaxKey)}
	}
	do, err := c.route()
	if err != nil {
		return err
	}
	return do(c)
}

// apiError is an error of S3.
type apiError struct {
	status        int
	code, message string
}

// Error implements error.
func (e *apiError) Error() string { return e.code + ": " + e.message }

var (
	errNoSuchKey    = &apiError{http.StatusNotFound, "NoSuchKey", "the key has no value"}
	errPrecondition = &apiError{http.StatusPreconditionFailed, "PreconditionFailed", "a condition of the request does not hold"}
	errNotModified  = &apiError{status: http.StatusNotModified}
	errWhere        = errors.New("objects are written below ~SESSION/")
	errKey          = errors.New("bad key")
)

func invalid(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "InvalidArgument", fmt.Sprintf(format, args...)}
}

func denied(format string, args ...any) error {
	return &apiError{http.StatusForbidden, "AccessDenied", fmt.Sprintf(format, args...)}
}

// errorOf converts an error to one of S3. Errors of the server itself go to the log; they
// may name its files.
func (c *call) errorOf(key string, err error) *apiError {
	var own *apiError
	var changed *engine.ChangedError
	switch {
	case errors.As(err, &own):
		return own
	case serve.Unavailable(err) != "":
		c.o.Log.WarnContext(c.ctx, "request failed", "database", c.bucket, "key", key, "error", fault.OneLine(err))
		return &apiError{http.StatusServiceUnavailable, "ServiceUnavailable", serve.Unavailable(err)}
	case errors.Is(err, serve.ErrNoDatabase):
		return &apiError{http.StatusNotFound, "NoSuchBucket", "there is no database of that name"}
	case errors.Is(err, kv.ErrNotFound), errors.Is(err, txn.ErrNoRef):
		return errNoSuchKey
	case errors.As(err, &changed), errors.Is(err, txn.ErrConflict):
		return errPrecondition
	case errors.Is(err, serve.ErrDenied), errors.Is(err, errWhere):
		return &apiError{http.StatusForbidden, "AccessDenied", err.Error()}
	case errors.Is(err, kv.ErrInvalidKey), errors.Is(err, errKey):
		return &apiError{http.StatusBadRequest, "InvalidURI", err.Error()}
	case errors.Is(err, kv.ErrTooLarge):
		return &apiError{http.StatusBadRequest, "EntityTooLarge", err.Error()}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apiError{http.StatusBadRequest, "RequestTimeout", "the client sent nothing for a while"}
	case errors.As(err, &sentError{}):
		return errIncomplete
	case errors.Is(err, errFull), errors.Is(err, os.ErrClosed), errors.Is(err, txn.ErrClosed):
		return &apiError{http.StatusServiceUnavailable, "SlowDown", "the server is full or about to end; try again"}
	case errors.Is(err, txn.ErrSessionClosed), errors.Is(err, txn.ErrLost):
		return &apiError{http.StatusNotFound, "NoSuchKey", "the session has ended"}
	}
	c.o.Log.ErrorContext(c.ctx, "request failed", "database", c.bucket, "key", key, "error", fault.OneLine(err))
	switch {
	// The bytes of the object lie in a file outside the database.
	case errors.Is(err, engine.ErrForbidden), errors.Is(err, txn.ErrNoVirtual):
		return &apiError{http.StatusForbidden, "AccessDenied", "the object is linked to a file that this server may not read"}
	case errors.Is(err, kv.ErrChanged):
		return &apiError{http.StatusConflict, "LinkedFileChanged", "the object is linked to a file that has changed since; import it again"}
	case errors.Is(err, engine.ErrUnreachable):
		return &apiError{http.StatusBadGateway, "LinkedFileUnreachable", "the object is linked to a file that is missing or cannot be read; the server's log has details"}
	}
	return &apiError{http.StatusInternalServerError, "InternalError", "the server failed; its log has details"}
}

// fail answers with an error.
func (c *call) fail(err error) {
	e := c.errorOf(c.object, err)
	head := c.w.Header()
	for _, name := range []string{"Content-Length", "Content-Type"} {
		head.Del(name)
	}
	if e.status == http.StatusNotModified {
		c.w.WriteHeader(e.status)
		return
	}
	for _, name := range []string{"Etag", "Last-Modified", "Accept-Ranges"} {
		head.Del(name)
	}
	if e.status != http.StatusRequestedRangeNotSatisfiable {
		head.Del("Content-Range")
	}
	if c.r.ContentLength != 0 {
		head.Set("Connection", "close") // the body was perhaps not read
	}
	c.send(e.status, errorXML{Code: e.code, Message: e.message, Resource: c.r.URL.Path})
}

// send answers with a document.
func (c *call) send(status int, document any) error {
	body, err := xml.Marshal(document)
	if err != nil {
		return err
	}
	body = append([]byte(xml.Header), body...)
	c.w.Header().Set("Content-Type", "application/xml")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(body) // an error means that the client is gone
	}
	return nil
}

// split splits an object's name into version or session and key.
func split(object string) (rev, key string, err error) {
	rev, key, _ = strings.Cut(object, "/")
	if rev, err = url.PathUnescape(rev); err != nil {
		return "", "", fmt.Errorf("%w: %w", errKey, err)
	}
	return rev, key, nil
}

// view opens the version or session that an object lies in.
func (c *call) view(bucket, object string) (*serve.View, string, error) {
	rev, key, err := split(object)
	if err != nil {
		return nil, "", err
	}
	if rev == "" {
		return nil, "", kv.ErrNotFound
	}
	v, err := c.t.View(c.ctx, c.who, bucket, rev)
	return v, key, err
}
