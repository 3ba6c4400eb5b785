package metrics

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/redact"
)

// answered is what the handler of a request tells the log.
type answered struct {
	who    string
	status int
	bytes  int64
}

type answeredKey struct{}

// Log returns a handler that writes a line in the common log format to out for each request that h answers. Parameters
// of queries may be secrets, and are left out. The handler calls [Sender] and [Set.Observe].
func Log(h http.Handler, out io.Writer) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a answered
		begun, path := time.Now(), r.URL.EscapedPath()
		if r.URL.RawQuery != "" {
			path += "?" + redact.Query(r.URL.RawQuery)
		}
		defer func() {
			host, _, err := net.SplitHostPort(r.RemoteAddr)
			if err != nil {
				host = "-" // a socket of this machine
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "%s - %s [%s] \"%s %s %s\" %d %d\n", host, cmp.Or(a.who, "-"), begun.Format("02/Jan/2006:15:04:05 -0700"), r.Method, path, r.Proto, a.status, a.bytes)
		}()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), answeredKey{}, &a)))
	})
}

// Sender tells the log, if any, who has sent the request of ctx.
func Sender(ctx context.Context, name string) {
	if a, ok := ctx.Value(answeredKey{}).(*answered); ok {
		a.who = name
	}
}
