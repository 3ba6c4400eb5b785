package web

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/zarrdb/zarrdb/serve"
)

// Timeouts against clients that connect and are slow.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// stallTime is how long a client may take for one piece beside what slowRate
	// allows for it.
	stallTime = 30 * time.Second
	slowRate  = 32 << 10 // bytes a second
	maxHeader = 32 << 10
)

// Server returns an HTTP server for a handler of this package, with timeouts and
// limits against slow and hostile clients. tls may be nil.
func Server(h http.Handler, tls *tls.Config) *http.Server {
	return &http.Server{Handler: h, TLSConfig: tls, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
}

// response counts what is sent, and gives slow clients a time for each piece.
type response struct {
	http.ResponseWriter
	status int
	bytes  int64
	until  time.Time // the deadline that is set
}

// WriteHeader implements [http.ResponseWriter].
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.extend(0)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extend(len(b))
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// extend moves the deadline for a piece of n bytes.
func (w *response) extend(n int) {
	until := time.Now().Add(stallTime + time.Duration(n)*time.Second/slowRate)
	if until.Sub(w.until) > time.Second {
		w.until = until
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(until) // not every writer has one
	}
}

// Unwrap is for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type principalKey struct{}

func withPrincipal(r *http.Request, who *serve.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, who))
}

func principal(r *http.Request) *serve.Principal {
	who, _ := r.Context().Value(principalKey{}).(*serve.Principal)
	return who
}
