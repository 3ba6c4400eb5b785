package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// httpError is an error with its status.
type httpError struct {
	status int
	err    error
}

func (e httpError) Error() string { return e.err.Error() }
func (e httpError) Unwrap() error { return e.err }

// errUnauthorized asks for a key.
var errUnauthorized = errors.New("a key is needed: send it as \"Authorization: Bearer SECRET\", or as the password of NAME")

// statusOf returns the status of an error.
func statusOf(err error) int {
	var own httpError
	var changed *engine.ChangedError
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &own):
		return own.status
	case errors.Is(err, errUnauthorized):
		return http.StatusUnauthorized
	case serve.Unavailable(err) != "":
		return http.StatusServiceUnavailable
	case errors.Is(err, errPath), errors.Is(err, kv.ErrInvalidKey), errors.Is(err, zarr.ErrPath), errors.Is(err, zarr.ErrSelection):
		return http.StatusBadRequest
	case errors.Is(err, serve.ErrDenied), errors.Is(err, engine.ErrForbidden), errors.Is(err, txn.ErrNoVirtual):
		return http.StatusForbidden
	case errors.Is(err, engine.ErrConvert):
		return http.StatusNotAcceptable
	case errors.Is(err, kv.ErrReadOnly):
		return http.StatusMethodNotAllowed
	case errors.Is(err, kv.ErrNotFound), errors.Is(err, txn.ErrNoRef), errors.Is(err, zarr.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, txn.ErrSessionClosed), errors.Is(err, txn.ErrLost):
		return http.StatusGone
	case errors.As(err, &changed):
		return http.StatusPreconditionFailed
	case errors.Is(err, txn.ErrConflict), errors.Is(err, txn.ErrSessionBusy), errors.Is(err, kv.ErrChanged), errors.Is(err, zarr.ErrKind):
		return http.StatusConflict
	case errors.Is(err, kv.ErrTooLarge), errors.Is(err, zarr.ErrTooLarge), errors.As(err, &tooLong):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	case errors.Is(err, os.ErrClosed), errors.Is(err, txn.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.Is(err, engine.ErrUnreachable):
		return http.StatusBadGateway
	case errors.Is(err, errors.ErrUnsupported):
		return http.StatusNotImplemented
	}
	return http.StatusInternalServerError
}

// fail answers with an error as JSON. Errors of the server itself go to the log;
// they may name its files.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	text := fault.OneLine(err)
	if in := serve.Unavailable(err); in != "" && status == http.StatusServiceUnavailable {
		h.o.Log.WarnContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", text)
		text = in
	}
	if status == http.StatusInternalServerError || status == http.StatusBadGateway {
		h.o.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", text)
		switch {
		case errors.Is(err, engine.ErrCorrupt):
			text = "the stored bytes are damaged; the server's log names the place"
		case status == http.StatusBadGateway:
			text = "the value refers to a file that cannot be read; the server's log has details"
		default:
			text = "the server failed; its log has details"
		}
	}
	head := w.Header()
	switch status {
	case http.StatusUnauthorized:
		head.Add("WWW-Authenticate", `Bearer realm="zarrdb"`)
		head.Add("WWW-Authenticate", `Basic realm="zarrdb", charset="UTF-8"`)
	case http.StatusServiceUnavailable:
		head.Set("Retry-After", "1")
	}
	head.Del("ETag")
	if status != http.StatusNotFound {
		head.Del("Cache-Control")
	}
	var refused struct {
		Error     string         `json:"error"`
		Conflicts []txn.Conflict `json:"conflicts,omitempty"`
	}
	refused.Error = text
	if conflict := (*txn.ConflictError)(nil); errors.As(err, &conflict) {
		refused.Conflicts = conflict.Conflicts
	}
	body, _ := json.Marshal(refused)
	body = append(body, '\n')
	head.Set("Content-Type", "application/json")
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
