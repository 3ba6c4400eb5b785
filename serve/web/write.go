package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// commitHeader asks for a commit of one write to a branch: its value is the
// message.
const commitHeader = "Zarrdb-Commit"

var (
	errNeedsSession = httpError{http.StatusForbidden, errors.New("a branch is written through a session (POST /-/api/sessions), or with ?commit=MESSAGE for a commit of this one write")}
	errMemory       = httpError{http.StatusServiceUnavailable, errors.New("too many large values are under way; try again")}
	errReadOnly     = httpError{http.StatusForbidden, errors.New("this server is read-only: to write, start it with --keys, and without --read-only")}
)

// write answers PUT and DELETE of a key, and DELETE of a directory.
func (h *handler) write(w http.ResponseWriter, r *http.Request, who *serve.Principal, p place) error {
	switch {
	case h.o.ReadOnly:
		return errReadOnly
	case p.form != "v":
		return httpError{http.StatusForbidden, errors.New("keys of another format are read-only")}
	case r.Method == http.MethodPut && p.dir:
		return httpError{http.StatusBadRequest, errors.New("a key does not end with a slash")}
	case p.dir && mergeSlashes(r.URL.Path) != r.URL.Path: // a variable of a script may be empty
		return httpError{http.StatusBadRequest, errors.New("DELETE of a directory: the path has an empty name; leave it out to delete all below the directory")}
	}
	if err := sameSite(r); err != nil {
		return err
	}
	var body []byte
	if r.Method == http.MethodPut {
		b, release, err := h.body(w, r)
		if err != nil {
			return err
		}
		defer release()
		body = b
	}
	if id, ok := strings.CutPrefix(p.rev, serve.SessionPrefix); ok {
		s, err := h.t.Session(r.Context(), who, p.db, id)
		if err != nil {
			return err
		}
		status, err := h.change(w, r, s, p, body)
		if err != nil {
			return err
		}
		h.audit(r, who, p, len(body))
		w.WriteHeader(status)
		return nil
	}
	message := r.URL.Query().Get("commit")
	if message == "" {
		message = r.Header.Get(commitHeader)
	}
	if message == "" {
		return errNeedsSession
	}
	return h.commitOne(w, r, who, p, body, message)
}

// commitOne makes one write a commit of a branch.
func (h *handler) commitOne(w http.ResponseWriter, r *http.Request, who *serve.Principal, p place, body []byte, message string) error {
	s, err := h.t.Begin(r.Context(), who, p.db, serve.BeginOptions{Branch: p.rev, Once: true})
	if err != nil {
		return err
	}
	status, err := h.change(w, r, s, p, body)
	var c *txn.Commit
	if err == nil {
		c, err = s.Commit(r.Context(), txn.CommitOptions{Message: message})
	}
	if err != nil {
		return errors.Join(err, s.Discard(context.WithoutCancel(r.Context())))
	}
	h.audit(r, who, p, len(body))
	w.Header().Set(commitHeader, c.ID.String())
	w.WriteHeader(status)
	return nil
}

// change writes or deletes a key in a session, under the conditions of the
// request, and returns the status.
func (h *handler) change(w http.ResponseWriter, r *http.Request, s *serve.Session, p place, body []byte) (int, error) {
	ctx := r.Context()
	if p.dir {
		return http.StatusNoContent, s.Engine().DeletePrefix(ctx, dirPrefix(p.key))
	}
	v := s.View()
	want, known, err := h.expect(ctx, v, r.Header, p.key)
	if err != nil {
		return 0, err
	}
	if r.Method == http.MethodDelete {
		return http.StatusNoContent, s.Engine().DeleteIf(ctx, p.key, want)
	}
	if _, err := s.Engine().SetIf(ctx, p.key, body, want); err != nil {
		return 0, err
	}
	if val, err := v.Value(ctx, p.key); err == nil {
		if tag, err := etag(ctx, val); err == nil && tag != "" {
			w.Header().Set("ETag", tag)
		}
	}
	if known {
		return http.StatusNoContent, nil
	}
	return http.StatusCreated, nil
}

// expect converts If-Match and If-None-Match to a condition on the key. known
// means that the key has a value now.
func (h *handler) expect(ctx context.Context, v *serve.View, head http.Header, key string) (want engine.Expect, known bool, err error) {
	ifMatch, ifNone := head.Get("If-Match"), head.Get("If-None-Match")
	stored, err := kv.Locate(ctx, v, key)
	known = err == nil
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return want, known, err
	}
	if ifMatch != "" {
		failed := httpError{http.StatusPreconditionFailed, fmt.Errorf("%s: the value does not match If-Match", key)}
		if !known {
			return want, known, failed
		}
		served, err := v.Value(ctx, key)
		if err != nil {
			return want, known, err
		}
		tag, err := etag(ctx, served)
		if err != nil {
			return want, known, err
		}
		if !matches(ifMatch, tag) {
			return want, known, failed
		}
		if want.ID = stored.ID(); want.ID == (kv.ID{}) {
			return want, known, httpError{http.StatusNotImplemented, fmt.Errorf("%s: If-Match of a value that has no identity", key)}
		}
	}
	switch ifNone {
	case "":
	case "*":
		want.Absent = true
	default:
		return want, known, httpError{http.StatusNotImplemented, errors.New("If-None-Match of a write can only be *")}
	}
	return want, known, nil
}

// sameSite refuses writes of web pages of other sites, to which the browser may
// add credentials. Browsers never add a Bearer token.
func sameSite(r *http.Request) error {
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return httpError{http.StatusForbidden, fmt.Errorf("%w: pages of other sites, and pages behind a proxy that changes the header Host, write with a Bearer token only", err)}
	}
	return nil
}

// budget bounds the bytes of values that are held for writes.
type budget struct{ left atomic.Int64 }

// reserve reserves n bytes, or returns false.
func (b *budget) reserve(n int64) bool {
	if b.left.Add(-n) < 0 {
		b.left.Add(n)
		return false
	}
	return true
}

// bodyPiece bounds the bytes of a body beyond its reservation.
const bodyPiece = 1 << 20

// body reads the value of a request. release releases its memory.
func (h *handler) body(w http.ResponseWriter, r *http.Request) (b []byte, release func(), err error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, nil, httpError{http.StatusUnsupportedMediaType, fmt.Errorf("Content-Encoding %s: values are stored as they are sent", serve.Clip(e))}
	}
	if r.ContentLength > h.o.BodyBytes {
		return nil, nil, &http.MaxBytesError{Limit: h.o.BodyBytes}
	}
	reserved := int64(0)
	giveBack := func() { h.memory.left.Add(reserved) }
	defer func() {
		if err != nil {
			giveBack()
		}
	}()
	in := http.MaxBytesReader(w, r.Body, h.o.BodyBytes)
	var out bytes.Buffer
	for {
		// Memory grows with the bytes received, not with the announced length.
		grow := min(max(r.ContentLength+1-reserved, bodyPiece), max(4*bodyPiece, reserved))
		if !h.memory.reserve(grow) {
			return nil, nil, errMemory
		}
		reserved += grow
		out.Grow(int(grow))
		n, err := io.CopyN(&out, in, grow)
		if errors.Is(err, io.EOF) && n < grow {
			return out.Bytes(), giveBack, nil
		}
		var tooLong *http.MaxBytesError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			err = httpError{http.StatusBadRequest, errors.New("the body ends early")}
		case err != nil && !errors.As(err, &tooLong) && !errors.Is(err, os.ErrDeadlineExceeded):
			err = httpError{http.StatusBadRequest, errors.New("the body cannot be read: its framing is wrong, or the connection ended")}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the body: %w", err)
		}
	}
}

// audit writes a line about a write.
func (h *handler) audit(r *http.Request, who *serve.Principal, p place, n int) {
	h.o.Log.InfoContext(r.Context(), "write", "method", r.Method, "database", p.db, "who", who.Name, "to", p.rev, "key", p.key, "bytes", n, "client", r.RemoteAddr)
}
