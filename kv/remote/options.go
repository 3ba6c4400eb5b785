package remote

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

// Options of a [Client]. nil and the zero value work.
type Options struct {
	// Transport sends requests. Default: one of the process, which keeps at
	// most 64 connections to a host and honours the usual proxy variables.
	Transport http.RoundTripper

	// Tries bounds how often a request is sent; default 6.
	Tries int
	// Backoff is the wait before the second try. It doubles with each further
	// one up to MaxBackoff. A random part, up to half, is subtracted. Defaults
	// 100 ms and 10 s.
	Backoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest wait that a server may ask for; after a
	// longer one the request fails. Default 1 minute.
	MaxRetryAfter time.Duration
	// Stall is the time without a byte after which a try fails; default 1
	// minute, negative for ever.
	Stall time.Duration

	// Parallel is the number of simultaneous requests of one batch, or of one
	// call of [kv.Gather]; default 16.
	Parallel int
	// Gap and MaxMerged are what [kv.Spacing] returns: the largest gap, in bytes,
	// between two parts that one request reads, and the most bytes that such a
	// request reads. Defaults 256 KiB, negative for none, and 8 MiB.
	Gap, MaxMerged int64
	// Memory bounds the bytes that all calls of [kv.Gather] of one client hold;
	// a single value may be longer. Default 256 MiB.
	Memory int64
	// MaxUnsized bounds the length of a value for which the server sends no
	// length; default 1 GiB.
	MaxUnsized int64

	// Redirects bounds the redirects of one request; default 5. If negative,
	// redirects are not followed but are answers.
	Redirects int
	// StayOnHost refuses redirects to other hosts and ports.
	StayOnHost bool
	// Redirect is called before a redirect is followed; its error fails the
	// request. nil applies the rule of [Client].
	Redirect func(to *url.URL) error

	// Sign, if set, is called with each try of a request before it is sent, to
	// add credentials.
	Sign func(*http.Request) error

	// Credentials, if set, says how a user gives credentials for a URL. The error of an
	// answer 401 ends with it.
	Credentials func(u *url.URL) string

	// Sleep, Now and Rand (from 0 up to 1) replace the real ones in tests.
	Sleep func(ctx context.Context, d time.Duration) error
	Now   func() time.Time
	Rand  func() float64
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.Tries = max(cmp.Or(c.Tries, 6), 1)
	c.Backoff = cmp.Or(c.Backoff, 100*time.Millisecond)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, 10*time.Second)
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, time.Minute)
	c.Stall = cmp.Or(c.Stall, time.Minute)
	c.Parallel = max(cmp.Or(c.Parallel, 16), 1)
	c.Gap = max(cmp.Or(c.Gap, 256<<10), 0)
	c.MaxMerged = cmp.Or(c.MaxMerged, 8<<20)
	c.Memory = cmp.Or(c.Memory, 256<<20)
	c.MaxUnsized = cmp.Or(c.MaxUnsized, 1<<30)
	c.Redirects = cmp.Or(c.Redirects, 5)
	if c.Transport == nil {
		c.Transport = processTransport()
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
