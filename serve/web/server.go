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
	maxHeader     = 32 << 10
)

// Server returns an HTTP server for a handler of this package, with timeouts and
// limits against slow and hostile clients; the pieces of bodies have timeouts of their
// own. Its connections are at most a quarter of the files that this process may open, connections
// of one address an eighth. tls may be nil.
func Server(h http.Handler, tls *tls.Config) *http.Server {
	s := &http.Server{Handler: h, TLSConfig: tls, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: withConn}
	if most := maxConnections(); most > 0 {
		s.ConnState = newConnections(most).state
	}
	return s
}

type principalKey struct{}

func withPrincipal(r *http.Request, who *serve.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, who))
}

func principal(r *http.Request) *serve.Principal {
	who, _ := r.Context().Value(principalKey{}).(*serve.Principal)
	return who
}
