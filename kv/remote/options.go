package remote

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

// Options say how a server is asked. nil and the zero value work.
type Options struct {
	// Transport sends requests. Default: one of the process, which keeps at
	// most 64 connections to a host and honours the usual proxy variables.
	Transport http.RoundTripper

	// Tries is how often a request is sent at most; default 6.
	Tries int
	// Backoff is the wait before the second try. It doubles with each further
	// one up to MaxBackoff, and a random half of it is taken off. Defaults
	// 100 ms and 10 s.
	Backoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest wait that a server may ask for; one that
	// asks for more is not asked again. Default 1 minute.
	MaxRetryAfter time.Duration
	// Stall is how long a try may give no byte before it is given up; default
	// 1 minute, negative for ever.
	Stall time.Duration

	// Parallel is how many requests of one batch, or of one reading of many
	// values, are under way; default 16.
	Parallel int
	// Gap is how many bytes between two ranges of a batch are read for nothing
	// to save a request; default 256 KiB, negative none.
	Gap int64
	// MaxMerged is how long ranges become by being merged; default 8 MiB. So
	// a batch holds at most Parallel times that beside what it returns.
	MaxMerged int64
	// Memory bounds the bytes of values that are gathered (see [kv.Gather]), of
	// all readings of one client together; one value alone may be longer. Default
	// 256 MiB.
	Memory int64
	// MaxUnsized is how long a value may be of which the server does not say
	// how long it is; default 1 GiB.
	MaxUnsized int64

	// Redirects is how many redirects of one request are followed; default 5.
	// Negative: none, they are answers like others.
	Redirects int
	// StayOnHost refuses redirects to other hosts and ports.
	StayOnHost bool
	// Redirect is asked before a redirect is followed; what it returns fails
	// the request. nil allows what [Client] describes.
	Redirect func(to *url.URL) error

	// Sign, if set, is called with each try of a request before it is sent, to
	// add credentials.
	Sign func(*http.Request) error

	// Sleep, Now and Rand (from 0 up to 1) stand in for the real ones in tests.
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
