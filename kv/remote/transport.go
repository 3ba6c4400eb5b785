package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// processTransport is shared by all views by default, so that the bounds per
// host hold for the process.
var processTransport = sync.OnceValue(func() http.RoundTripper { return newTransport(nil) })

// Transport returns the transport of a client with these options, for a Protocol
// that wraps it.
func Transport(o *Options) http.RoundTripper {
	c := o.withDefaults()
	return c.Transport
}

// publicTransport connects to public addresses only.
var publicTransport = sync.OnceValue(func() http.RoundTripper { return newTransport(onlyPublic) })

func newTransport(control func(network, address string, _ syscall.RawConn) error) *http.Transport {
	dial := net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second, Control: control}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxConnsPerHost:        64,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    20 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		ReadBufferSize:         64 << 10,
	}
}

// onlyPublic refuses to connect to this machine, to a local network, or to an
// address that means no single machine. It checks the resolved address, so that
// a name cannot evade it.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !public(at.Addr()) {
		return fmt.Errorf("%w: it leads to %s, which is not a public address", ErrRedirect, address)
	}
	return nil
}

// reserved are non-public networks that the standard library does not know:
// shared address space, "this network", and IPv6 addresses that embed IPv4 ones.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
}

func public(a netip.Addr) bool {
	a = a.Unmap()
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate()
}

// guard sends requests that a redirect led to another host through the transport
// that reaches public addresses only. Requests through a proxy are not guarded:
// the proxy has rules of its own for addresses.
type guard struct{ next http.RoundTripper }

type outside struct{} // key of a context: the request left its host by the default rule

func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if left, ok := req.Context().Value(outside{}).(*bool); ok && *left {
		if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy == nil {
			return publicTransport().RoundTrip(req)
		}
	}
	return g.next.RoundTrip(req)
}

// mark adds a flag to the context of a request, which guard reads.
func mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, outside{}, new(bool))
}

// redirect decides whether to follow one.
func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	if c.o.Redirects < 0 {
		return http.ErrUseLastResponse
	}
	req.Header.Del("Referer")
	if len(via) > c.o.Redirects {
		return fmt.Errorf("%w: more than %d", ErrRedirect, c.o.Redirects)
	}
	to := req.URL
	if to.Scheme != "http" && to.Scheme != "https" {
		return fmt.Errorf("%w: it leads to a URL of scheme %q", ErrRedirect, to.Scheme)
	}
	from := via[0].URL
	if !sameOrigin(from, to) {
		req.Header.Del("Authorization") // the standard library keeps it for other ports
	}
	if c.o.StayOnHost && !sameOrigin(from, to) {
		return fmt.Errorf("%w: it leads to another host, %s", ErrRedirect, to.Host)
	}
	if c.o.Redirect != nil {
		if err := c.o.Redirect(to); err != nil {
			return fmt.Errorf("%w: %w", ErrRedirect, err)
		}
		return nil
	}
	left, _ := req.Context().Value(outside{}).(*bool)
	switch {
	case sameOrigin(from, to) && !*left:
		return nil
	case via[len(via)-1].URL.Scheme == "https" && to.Scheme == "http":
		return fmt.Errorf("%w: it leads from https to %s", ErrRedirect, Redact(to))
	}
	*left = true
	return nil
}

// sameOrigin reports whether to is on the host and port of from, or the same
// host one step safer.
func sameOrigin(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	return from.Scheme == to.Scheme && from.Port() == to.Port() ||
		from.Scheme == "http" && to.Scheme == "https" && (from.Port() == "" || from.Port() == "80") && (to.Port() == "" || to.Port() == "443")
}
