package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

// Client sends requests and repeats them after errors that may pass: answers
// 408, 429, 500, 502, 503 and 504, broken connections and stalls. Safe for
// concurrent use.
//
// Redirects are followed on the same host and port, or from http to https of the
// same host at the usual ports. Elsewhere they are followed only to a public
// address, never to one of this machine or of a local network, and not from
// https to http; Options.Redirect replaces this rule. Credentials are not sent
// to another host, and the header Referer is never sent.
type Client struct {
	o      Options
	http   http.Client
	memory *gather.Memory // of values that are gathered
	spare  *gather.Spare  // room to read parts of a value at a time
}

// NewClient returns a client. o is copied.
func NewClient(o *Options) *Client {
	c := &Client{o: o.withDefaults()}
	c.memory = gather.NewMemory(c.o.Memory)
	c.spare = gather.NewSpare(c.o.Parallel, c.memory)
	c.http = http.Client{Transport: guard{c.o.Transport}, CheckRedirect: c.redirect}
	return c
}

// Each calls fn for 0 to n-1, up to Options.Parallel calls at a time, and
// returns the first error. After an error no further call begins, and running
// calls are canceled.
func (c *Client) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	return gather.Each(ctx, c.o.Parallel, n, fn)
}

// Do sends the request that build makes, and calls handle with the answer, of
// any status. Both are called again for each try. If handle returns
// [Client.Failed], or the body breaks while it reads, Do may try again. The body
// is closed when handle returns.
func (c *Client) Do(ctx context.Context, build func(context.Context) (*http.Request, error), handle func(*http.Response) error) error {
	for try := 1; ; try++ {
		err := c.try(ctx, build, handle)
		var t *transient
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, &t):
			return err
		case try >= c.o.Tries || t.after > c.o.MaxRetryAfter:
			return err
		}
		if err := c.o.Sleep(ctx, max(t.after, c.backoff(try))); err != nil {
			return err
		}
	}
}

// Once is Do for a request that may not be repeated unseen. After a lost answer, or one that
// Do would try again, the error is [kv.ErrUnknown].
func (c *Client) Once(ctx context.Context, build func(context.Context) (*http.Request, error), handle func(*http.Response) error) error {
	err := c.try(ctx, build, handle)
	var t *transient
	if err != nil && (ctx.Err() != nil || errors.As(err, &t)) {
		return fmt.Errorf("%w: %w", kv.ErrUnknown, errors.Join(ctx.Err(), err))
	}
	return err
}

// backoff is the wait after a number of tries.
func (c *Client) backoff(tries int) time.Duration {
	d := c.o.MaxBackoff
	if shift := tries - 1; shift < 30 && c.o.Backoff<<shift < d && c.o.Backoff<<shift > 0 {
		d = c.o.Backoff << shift
	}
	return d - time.Duration(c.o.Rand()*float64(d)/2)
}

func (c *Client) try(ctx context.Context, build func(context.Context) (*http.Request, error), handle func(*http.Response) error) error {
	ctx, cancel := context.WithCancelCause(mark(ctx))
	defer cancel(nil)
	var req *http.Request
	err := mmap.Catch(func() (err error) { // a signature reads all that is sent
		req, err = build(ctx)
		return err
	})
	if err != nil {
		return err
	}
	// Ranges count uncompressed bytes.
	if req.Header.Get("Accept-Encoding") == "" {
		req.Header.Set("Accept-Encoding", "identity")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "zarrdb")
	}
	if c.o.Sign != nil {
		if err := c.o.Sign(req); err != nil {
			return &Error{Method: req.Method, URL: Redact(req.URL), Err: err}
		}
	}
	watch := c.watch(cancel)
	defer watch.stop()
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &upload{ReadCloser: req.Body, watch: watch, hold: kv.Hold(ctx)}
		if again := req.GetBody; again != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				b, err := again()
				return &upload{ReadCloser: b, watch: watch, hold: kv.Hold(ctx)}, err
			}
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.broken(ctx, req, err)
	}
	watch.progress()
	resp.Body = &body{ctx: ctx, req: req, rc: resp.Body, watch: watch, c: c}
	err = handle(resp)
	if err == nil || resp.StatusCode >= 300 {
		// A short rest is read, so that the connection can be reused.
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	}
	_ = resp.Body.Close() // its bytes were read or are not needed
	return err
}

// broken is the error of a try that ended without an answer.
func (c *Client) broken(ctx context.Context, req *http.Request, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // the rest quotes the address with its secrets
	}
	if strings.Contains(err.Error(), "Location header") {
		err = errors.New("a malformed redirect") // the text quotes it, and it may hold secrets
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	out := &Error{Method: req.Method, URL: Redact(req.URL), Err: err}
	if worthless(err) {
		return out
	}
	return &transient{err: out}
}

// worthless reports whether every further try would fail with the same error.
func worthless(err error) bool {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.Is(err, ErrRedirect) || errors.Is(err, ErrAnswer) || errors.Is(err, mmap.ErrFault) ||
		errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &cert) || errors.As(err, &record) ||
		strings.Contains(err.Error(), "unsupported protocol scheme") || strings.Contains(err.Error(), "malformed redirect")
}

// Failed returns the error of an answer whose status is no success. code is the
// server's name of the error, or "".
func (c *Client) Failed(resp *http.Response, code string) error {
	err := &Error{Method: resp.Request.Method, URL: Redact(resp.Request.URL), Status: resp.StatusCode, Code: code}
	if resp.StatusCode == http.StatusUnauthorized && c.o.Credentials != nil {
		err.Credentials = c.o.Credentials(resp.Request.URL)
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &transient{err, c.retryAfter(resp.Header.Get("Retry-After"))}
	}
	if code == "RequestTimeout" { // S3 says so with the status 400
		return &transient{err: err}
	}
	return err
}

// wrong returns the error of an invalid answer.
func wrong(resp *http.Response, err error) error {
	return &Error{Method: resp.Request.Method, URL: Redact(resp.Request.URL), Status: resp.StatusCode, Err: err}
}

// retryAfter reads the header Retry-After: seconds, or a time.
func (c *Client) retryAfter(text string) time.Duration {
	if s, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(time.Duration(s)*time.Second, 0)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(c.o.Now()), 0)
	}
	return 0
}

// watch cancels a try that makes no progress.
type watch struct {
	timer *time.Timer
	stall time.Duration
}

func (c *Client) watch(cancel context.CancelCauseFunc) watch {
	if c.o.Stall < 0 {
		return watch{}
	}
	return watch{time.AfterFunc(c.o.Stall, func() { cancel(errStalled) }), c.o.Stall}
}

func (w watch) progress() {
	if w.timer != nil {
		w.timer.Reset(w.stall)
	}
}

func (w watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// upload is the body of a request: bytes that the server accepts are progress.
type upload struct {
	io.ReadCloser
	watch watch
	hold  func() // as in [kv.WithHold]
	begun bool
}

// Read is called by a goroutine of net/http. The bytes may be mapped.
func (u *upload) Read(p []byte) (n int, err error) {
	u.watch.progress()
	if u.hold != nil {
		if p = p[:min(len(p), 8<<10)]; u.begun { // what was read before was sent
			u.hold()
			u.hold = nil
		}
		u.begun = true
	}
	err = mmap.Catch(func() (err error) {
		n, err = u.ReadCloser.Read(p)
		return err
	})
	return n, err
}

// body is the body of an answer. Its errors are transient.
type body struct {
	ctx   context.Context
	req   *http.Request
	rc    io.ReadCloser
	watch watch
	c     *Client
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	if n > 0 {
		b.watch.progress()
	}
	if err != nil && err != io.EOF {
		err = b.c.broken(b.ctx, b.req, err)
	}
	return n, err
}

func (b *body) Close() error { return b.rc.Close() }
