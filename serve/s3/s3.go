// Package s3 serves the databases and targets of a [serve.Table] to S3 clients.
//
//	bucket             a database
//	REV/key            a value: REV is a branch, tag or commit, escaped as one
//	                   segment of a URL
//	~SESSION/key       the same in an open session, which can be written
//
// The library github.com/rclone/gofakes3 implements the protocol. This package
// adds signatures, with the keys of package auth, and the objects. ETags are
// content ids, not MD5. User metadata of objects is not stored.
package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/signature"

	"github.com/zarrdb/zarrdb/engine"
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
	inner http.Handler

	started time.Time

	mu      sync.Mutex
	uploads map[gofakes3.UploadID]*upload
	forget  func(ctx context.Context, bucket, name string, id gofakes3.UploadID)
}

// New returns a handler for everything that t serves, with buckets in the path.
func New(t *serve.Table, o Options) *Handler {
	h := &Handler{t: t, o: o.withDefaults(), started: time.Now(), uploads: map[gofakes3.UploadID]*upload{}}
	h.slots = make(chan struct{}, h.o.Requests)
	h.spool = newSpool(h.o.SpoolDir, h.o.SpoolBytes)
	g := gofakes3.New(backend{h}, gofakes3.WithTimeSkewLimit(0), gofakes3.WithUploadOwner(func(ctx context.Context) string { return who(ctx).Name }))
	h.inner = g.Server()
	h.forget = func(ctx context.Context, bucket, name string, id gofakes3.UploadID) {
		_ = g.ForgetMultipartUpload(ctx, bucket, name, id) // an error means that the upload is unknown
	}
	return h
}

type whoKey struct{}

func who(ctx context.Context) *serve.Principal {
	p, _ := ctx.Value(whoKey{}).(*serve.Principal)
	return p
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		refuse(w, r, http.StatusForbidden, "AccessDenied", "web pages read over HTTP, not S3")
		return
	}
	out := &pace.Writer{ResponseWriter: w}
	w = out
	if h.o.Metrics != nil {
		begun := time.Now()
		defer func() { h.o.Metrics.Observe("s3", out.Status, out.Bytes, time.Since(begun)) }()
	}
	if r.Body != nil {
		r.Body = pace.Body(w, r.Body)
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		refuse(w, r, http.StatusServiceUnavailable, "SlowDown", "too many requests at a time; try again")
		return
	}
	p := h.authenticate(w, r)
	if p == nil {
		return
	}
	if h.o.ReadOnly && (p.Admin || len(p.Write) > 0) {
		p = &serve.Principal{Name: p.Name}
	}
	r = r.WithContext(context.WithValue(r.Context(), whoKey{}, p))
	if !h.permitted(w, r, p) {
		return
	}
	// Times are less exact than ETags: two commits, or two writes of a session,
	// may have the same second. So conditions on times are ignored.
	for _, name := range []string{"If-Modified-Since", "If-Unmodified-Since"} {
		r.Header.Del(name)
		r.Header.Del("X-Amz-Copy-Source-" + name)
	}
	h.checkPayload(r)
	n := &noOrigin{ResponseWriter: w}
	h.inner.ServeHTTP(n, r.WithContext(context.WithValue(r.Context(), answerKey{}, n)))
	n.end(r)
}

// authenticate returns the principal that signed a request, or answers the
// request.
func (h *Handler) authenticate(w http.ResponseWriter, r *http.Request) *serve.Principal {
	if r.Header.Get("Authorization") == "" && r.URL.Query().Get("X-Amz-Signature") == "" {
		anonymous := h.o.Anonymous
		if h.o.Keys != nil {
			anonymous = h.o.Keys.Anonymous()
		} else if anonymous != nil && (r.Header.Get("Origin") != "" || r.Host != "" && !serve.Loopback(r.Host)) {
			anonymous = nil // the request may come from any web page
		}
		if anonymous == nil {
			refuse(w, r, http.StatusForbidden, "AccessDenied", "a signature with a key is needed")
		}
		return anonymous
	}
	refused := func(code, message string) *serve.Principal {
		h.o.Log.WarnContext(r.Context(), "signature refused", "code", code, "client", r.RemoteAddr)
		refuse(w, r, http.StatusForbidden, code, message)
		return nil
	}
	if h.o.Keys == nil {
		return refused("InvalidAccessKeyId", "this server has no keys")
	}
	// A name may have several secrets.
	for i := 0; ; i++ {
		var p *serve.Principal
		result := signature.V4SignVerifyWithLookup(r, func(name string) (string, bool) {
			secrets, people := h.o.Keys.Secrets(name)
			if i >= len(secrets) {
				return "", false
			}
			p = people[i]
			return secrets[i], true
		})
		switch {
		case result == signature.ErrNone && p != nil && !ofItsDay(r):
			return refused("SignatureDoesNotMatch", "the credential and the request have different dates")
		case result == signature.ErrNone && p != nil:
			return p
		case p == nil:
			// All secrets of the name were tried, or the request is invalid.
			api := signature.GetAPIError(result)
			if i > 0 {
				return refused("SignatureDoesNotMatch", "the signature is not that of the key")
			}
			return refused(api.Code, api.Description)
		}
		if code := signature.GetAPIError(result).Code; code != "SignatureDoesNotMatch" {
			return refused(code, signature.GetAPIError(result).Description)
		}
	}
}

// ofItsDay reports whether a signed request is of the day that its credential names. The
// key that signs is derived from the secret for one day, and worth nothing on others.
func ofItsDay(r *http.Request) bool {
	credential, at := r.URL.Query().Get("X-Amz-Credential"), r.URL.Query().Get("X-Amz-Date")
	if header := r.Header.Get("Authorization"); header != "" {
		_, credential, _ = strings.Cut(header, "Credential=")
		credential, _, _ = strings.Cut(credential, ",")
		at = r.Header.Get("X-Amz-Date")
		if t, err := http.ParseTime(r.Header.Get("Date")); at == "" && err == nil {
			at = t.UTC().Format("20060102T150405Z")
		}
	}
	parts := strings.Split(strings.TrimSpace(credential), "/") // NAME/DAY/REGION/SERVICE/aws4_request
	day, _, ok := strings.Cut(at, "T")
	return ok && len(parts) >= 5 && parts[len(parts)-4] == day
}

// permitted answers requests that may not be made, with the reason.
func (h *Handler) permitted(w http.ResponseWriter, r *http.Request, p *serve.Principal) bool {
	bucket, object, _ := strings.Cut(strings.TrimLeft(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	denied := func(format string, args ...any) bool {
		refuse(w, r, http.StatusForbidden, "AccessDenied", fmt.Sprintf(format, args...))
		return false
	}
	if len(object) > maxKey {
		refuse(w, r, http.StatusBadRequest, "KeyTooLongError", fmt.Sprintf("a key has at most %d bytes", maxKey))
		return false
	}
	if id, ok := sessionOf(object); ok {
		if _, err := h.t.Session(r.Context(), p, bucket, id); errors.Is(err, serve.ErrDenied) {
			return denied("%v", err)
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	if h.o.ReadOnly {
		return denied("this server is read-only")
	}
	_, inSession := sessionOf(object)
	switch {
	case r.Method == http.MethodPost && object == "" && q.Has("delete"):
		return true // the keys are in the body
	case object == "":
		return denied("buckets are databases: zarrdb init makes one")
	case !inSession:
		return denied("%s is for reading; objects are written below ~SESSION/, and committed with the session", serve.Clip(object))
	case q.Has("tagging"), q.Has("acl"):
		return denied("objects have no tags and no access control lists")
	}
	return true
}

// sessionOf returns the id of the session that an object lies in.
func sessionOf(object string) (id string, ok bool) {
	first, _, _ := strings.Cut(object, "/")
	if text, err := url.PathUnescape(first); err == nil {
		first = text
	}
	return strings.CutPrefix(first, serve.SessionPrefix)
}

// checkPayload makes the body of a signed request fail if it differs from the
// signed hash.
func (h *Handler) checkPayload(r *http.Request) {
	want, err := hex.DecodeString(r.Header.Get("X-Amz-Content-Sha256"))
	if err == nil && len(want) == sha256.Size && r.Body != nil {
		r.Body = &hashedBody{ReadCloser: r.Body, sum: sha256.New(), want: string(want), left: r.ContentLength}
	}
}

// hashedBody fails at its end if its hash is not the signed one.
type hashedBody struct {
	io.ReadCloser
	sum  hash.Hash
	want string
	left int64 // bytes to come; -1 if unknown
}

func (b *hashedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.sum.Write(p[:n])
	if b.left >= 0 {
		b.left -= int64(n)
	}
	if (errors.Is(err, io.EOF) || b.left == 0) && string(b.sum.Sum(nil)) != b.want {
		return 0, gofakes3.ErrorMessage(gofakes3.ErrBadDigest, "the body is not the one that was signed")
	}
	return n, err
}

// noOrigin removes the header that allows web pages of every origin to read, and answers
// with why an object could not be read. The status waits for the first byte, since an
// object is read after its header was made.
type noOrigin struct {
	http.ResponseWriter
	status int
	sent   bool
	lost   bool  // the client takes nothing more
	failed error // why the bytes of an object cannot be read
}

type answerKey struct{}

func (w *noOrigin) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *noOrigin) Write(b []byte) (int, error) {
	if w.failed != nil && !w.sent {
		return len(b), nil // end answers
	}
	w.send()
	n, err := w.ResponseWriter.Write(b)
	w.lost = w.lost || err != nil
	return n, err
}

func (w *noOrigin) send() {
	if w.sent {
		return
	}
	w.sent = true
	w.clean()
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// end sends what has not been sent.
func (w *noOrigin) end(r *http.Request) {
	if w.failed == nil {
		w.send()
		return
	}
	if w.sent {
		panic(http.ErrAbortHandler) // so that the client notices the missing bytes
	}
	w.clean()
	for _, name := range []string{"Content-Length", "Content-Range", "Etag", "Last-Modified", "Accept-Ranges"} {
		w.Header().Del(name)
	}
	status, code, why, _ := linked(w.failed)
	refuse(w.ResponseWriter, r, status, code, why)
}

// linked describes the error of an object whose bytes lie in a file outside the database.
func linked(err error) (status int, code, why string, ok bool) {
	switch {
	case errors.Is(err, engine.ErrForbidden), errors.Is(err, txn.ErrNoVirtual):
		return http.StatusForbidden, "AccessDenied", "the object is linked to a file that this server may not read", true
	case errors.Is(err, kv.ErrChanged):
		return http.StatusConflict, "LinkedFileChanged", "the object is linked to a file that has changed since; import it again", true
	case errors.Is(err, engine.ErrUnreachable):
		return http.StatusBadGateway, "LinkedFileUnreachable", "the object is linked to a file that is missing or cannot be read; the server's log has details", true
	}
	return http.StatusInternalServerError, "InternalError", "the server failed; its log has details", false
}

func (w *noOrigin) clean() {
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Expose-Headers"} {
		w.Header().Del(name)
	}
	w.Header().Set("Server", "zarrdb")
}

// Unwrap is for [http.ResponseController].
func (w *noOrigin) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// refuse answers with an error in the format of S3.
func refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	body, _ := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: code, Message: message})
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Connection", "close") // the body was not read
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, xml.Header)
		_, _ = w.Write(body)
	}
}

const maxKey = 4096
