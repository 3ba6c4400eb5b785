package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

var bg = context.Background()

// plainWeb is the simplest Protocol.
type plainWeb struct{ base string }

func (p plainWeb) Request(ctx context.Context, method, key string, pin Version) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.base+key, nil)
	if err == nil {
		pin.Condition(req.Header)
	}
	return req, err
}
func (plainWeb) Version(h http.Header) Version    { return VersionOf(h) }
func (plainWeb) Missing(resp *http.Response) bool { return resp.StatusCode == http.StatusNotFound }
func (plainWeb) Code(*http.Response) string       { return "" }

// serve starts a server and reads it with o, which is changed not to wait.
func serve(t *testing.T, o Options, handler http.HandlerFunc) (*Objects, *[]time.Duration) {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	var mu sync.Mutex
	var waits []time.Duration
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, d)
		return ctx.Err()
	}
	if o.Rand == nil {
		o.Rand = func() float64 { return 0 }
	}
	return NewObjects(NewClient(&o), plainWeb{srv.URL + "/"}), &waits
}

// raw answers with bytes as they are, and closes the connection.
func raw(w http.ResponseWriter, answer string) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = buf.WriteString(answer)
	_ = buf.Flush()
}

// TestHostile reads from servers that say what is not so.
func TestHostile(t *testing.T) {
	const head = "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\n"
	endless := func(w http.ResponseWriter, header string) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, err = buf.WriteString(header)
		for err == nil {
			_, err = buf.Write(make([]byte, 4096)) // until the client hangs up
		}
	}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		rng    kv.Range
		want   error
	}{
		"other range":       {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 1-4/9\r\n\r\nabcd") }, kv.Span(0, 4), ErrAnswer},
		"shorter range":     {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 0-2/9\r\n\r\nabc") }, kv.Span(0, 4), ErrAnswer},
		"longer range":      {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 0-4/9\r\n\r\nabcde") }, kv.Span(0, 4), ErrAnswer},
		"no range":          {func(w http.ResponseWriter) { raw(w, head+"\r\nabcd") }, kv.Span(0, 4), ErrAnswer},
		"backward range":    {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 4-0/9\r\n\r\nabcd") }, kv.Span(0, 4), ErrAnswer},
		"range beyond size": {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 0-9/4\r\n\r\nabcd") }, kv.Span(0, 10), ErrAnswer},
		"overflowing range": {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 1-9223372036854775807/*\r\n\r\nabcd") }, kv.From(1), kv.ErrTooLarge},
		"several ranges": {func(w http.ResponseWriter) {
			raw(w, head+"Content-Type: multipart/byteranges; boundary=x\r\n\r\n--x\r\n")
		}, kv.Span(0, 4), ErrAnswer},
		"length of another": {func(w http.ResponseWriter) {
			raw(w, head+"Content-Range: bytes 0-3/9\r\nContent-Length: 5\r\n\r\nabcde")
		}, kv.Span(0, 4), ErrAnswer},
		"more than it says": {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 0-3/9\r\n\r\nabcdefgh") }, kv.Span(0, 4), ErrAnswer},
		"short body":        {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 0-3/9\r\n\r\nab") }, kv.Span(0, 4), io.ErrUnexpectedEOF},
		"short whole":       {func(w http.ResponseWriter) { raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") }, kv.All(), io.ErrUnexpectedEOF},
		"exabytes": {func(w http.ResponseWriter) {
			raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 4611686018427387904\r\n\r\nabc")
		}, kv.All(), kv.ErrTooLarge},
		"far into no range": {func(w http.ResponseWriter) {
			raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 4611686018427387904\r\n\r\nabc")
		}, kv.Last(3), ErrAnswer},
		"endless":        {func(w http.ResponseWriter) { endless(w, "HTTP/1.1 200 OK\r\n\r\n") }, kv.All(), ErrAnswer},
		"endless end":    {func(w http.ResponseWriter) { endless(w, "HTTP/1.1 200 OK\r\n\r\n") }, kv.Last(5), ErrAnswer},
		"endless range":  {func(w http.ResponseWriter) { endless(w, head+"Content-Range: bytes 0-3/9\r\n\r\n") }, kv.Span(0, 4), ErrAnswer},
		"endless header": {func(w http.ResponseWriter) { endless(w, "HTTP/1.1 200 OK\r\nX: ") }, kv.All(), nil},
		"gzip": {func(w http.ResponseWriter) {
			raw(w, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc")
		}, kv.All(), ErrAnswer},
		"refused, yet there": {func(w http.ResponseWriter) { raw(w, "HTTP/1.1 416 No\r\nContent-Range: bytes */100\r\n\r\n") }, kv.Span(0, 4), ErrAnswer},
		"no answer":          {func(w http.ResponseWriter) { raw(w, "") }, kv.All(), nil},
		"no HTTP":            {func(w http.ResponseWriter) { raw(w, "220 smtp\r\n") }, kv.All(), nil},
		"nothing like it":    {func(w http.ResponseWriter) { raw(w, "HTTP/1.1 204 No Content\r\n\r\n") }, kv.Span(0, 1), nil},
		"whole as a part":    {func(w http.ResponseWriter) { raw(w, head+"Content-Range: bytes 0-3/4\r\n\r\nabcd") }, kv.All(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := serve(t, Options{Tries: 2, MaxUnsized: 1 << 20}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.Header().Set("Content-Length", "100")
					return
				}
				test.answer(w)
			})
			b, err := o.Get(bg, "k", test.rng)
			var e *Error
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !errors.As(err, &e) && !errors.Is(err, ErrAnswer) {
				t.Errorf("%d bytes, %v, want %v", len(b), err, test.want)
			}
		})
	}
}

// TestLocatedLies locates values that are not as long as the server says.
func TestLocatedLies(t *testing.T) {
	for _, size := range []int64{10, 1 << 40, 1 << 62} {
		o, _ := serve(t, Options{Tries: 2}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			w.Header().Set("ETag", `"a"`)
			_, _ = w.Write([]byte("abc"))
		})
		v, err := o.Locate(bg, "k")
		if err != nil || v.Size() != size {
			t.Fatalf("%v, %v", v, err)
		}
		if err := v.View(bg, kv.All(), func([]byte) error { return nil }); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, kv.ErrTooLarge) {
			t.Errorf("View of 3 bytes said to be %d: %v", size, err)
		}
	}
}

// TestRetries counts tries and waits.
func TestRetries(t *testing.T) {
	ms := func(n ...int) (d []time.Duration) {
		for _, n := range n {
			d = append(d, time.Duration(n)*time.Millisecond)
		}
		return d
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		status int
		after  string
		fails  int
		waits  []time.Duration
		ok     bool
	}{
		"once":           {503, "", 1, ms(100), true},
		"often":          {500, "", 5, ms(100, 200, 400, 800, 1000), true},
		"too often":      {429, "", 6, ms(100, 200, 400, 800, 1000), false},
		"seconds":        {429, "7", 1, ms(7000), true},
		"less than ours": {503, "0", 1, ms(100), true},
		"a time":         {503, now.Add(3 * time.Second).Format(http.TimeFormat), 1, ms(3000), true},
		"past":           {503, now.Add(-3 * time.Second).Format(http.TimeFormat), 1, ms(100), true},
		"too long":       {503, "3600", 1, nil, false},
		"nonsense":       {503, "soon", 1, ms(100), true},
		"our fault":      {400, "", 1, nil, false},
		"not allowed":    {401, "", 1, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			fails := test.fails
			o, waits := serve(t, Options{MaxBackoff: time.Second, Now: func() time.Time { return now }}, func(w http.ResponseWriter, _ *http.Request) {
				if fails--; fails < 0 {
					_, _ = w.Write([]byte("abc"))
					return
				}
				if test.after != "" {
					w.Header().Set("Retry-After", test.after)
				}
				w.WriteHeader(test.status)
			})
			b, err := o.Get(bg, "k", kv.All())
			if test.ok != (err == nil) || test.ok && string(b) != "abc" || !slices.Equal(*waits, test.waits) {
				t.Errorf("%q, %v after waits %v, want %v", b, err, *waits, test.waits)
			}
			var e *Error
			if !test.ok && (!errors.As(err, &e) || e.Status != test.status) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestBackoffIsJittered(t *testing.T) {
	c := NewClient(&Options{Rand: func() float64 { return 0.5 }})
	for i, want := range []time.Duration{75, 150, 300, 600, 1200, 2400, 4800, 7500, 7500} {
		if got := c.backoff(i + 1); got != want*time.Millisecond {
			t.Errorf("after %d tries %v, want %v", i+1, got, want)
		}
	}
	if got := c.backoff(1 << 20); got != 7500*time.Millisecond {
		t.Errorf("at last %v", got)
	}
}

// TestBroken breaks the connection at every byte of an answer: what is read in
// the end is whole.
func TestBroken(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"a\"\r\nConnection: close\r\n\r\n0123456789"
	for cut := range len(answer) {
		tries := 0
		o, _ := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			if tries++; tries == 1 {
				raw(w, answer[:cut])
			} else {
				raw(w, answer)
			}
		})
		if b, err := o.Get(bg, "k", kv.All()); err != nil || string(b) != "0123456789" || tries != 2 {
			t.Errorf("cut at %d: %q, %v after %d tries", cut, b, err, tries)
		}
	}
}

// answers is a RoundTripper that needs no network.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// drip gives one byte a time, with a wait before each.
type drip struct {
	ctx  context.Context
	n    int
	wait time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if d.n == 0 {
		return 0, io.EOF
	}
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(d.wait):
	}
	d.n--
	p[0] = 'x'
	return 1, nil
}
func (d *drip) Close() error { return nil }

// TestStall lets servers be slow, in false time.
func TestStall(t *testing.T) {
	for _, test := range []struct {
		wait time.Duration
		ok   bool
	}{{50 * time.Second, true}, {70 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c := NewClient(&Options{Tries: 3, Transport: answers(func(r *http.Request) (*http.Response, error) {
				tries++
				return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: 4, Request: r, Body: &drip{r.Context(), 4, test.wait}}, nil
			})})
			o := NewObjects(c, plainWeb{"http://example.com/"})
			b, err := o.Get(bg, "k", kv.All())
			if test.ok && (err != nil || len(b) != 4 || tries != 1) || !test.ok && (!errors.Is(err, errStalled) || tries != 3) {
				t.Errorf("a byte every %v: %q, %v after %d tries", test.wait, b, err, tries)
			}
			// However slow, the caller's context ends it.
			ctx, cancel := context.WithTimeout(bg, 5*time.Second)
			defer cancel()
			start := time.Now()
			if _, err := o.Get(ctx, "k", kv.All()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
				t.Errorf("under a deadline: %v after %v", err, time.Since(start))
			}
		})
	}
}

// slowly takes the body of a request, a byte after each wait, and answers.
func slowly(wait time.Duration) answers {
	return func(r *http.Request) (*http.Response, error) {
		for p := make([]byte, 1); ; {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			if _, err := r.Body.Read(p); err == io.EOF {
				return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: http.NoBody}, nil
			}
		}
	}
}

// TestStalledUpload gives up a request of which the server takes nothing, and
// not one of which it takes little.
func TestStalledUpload(t *testing.T) {
	for _, test := range []struct {
		wait time.Duration
		ok   bool
	}{{50 * time.Second, true}, {70 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c := NewClient(&Options{Tries: 3, Transport: slowly(test.wait)})
			err := c.Do(bg, func(ctx context.Context) (*http.Request, error) {
				tries++
				return http.NewRequestWithContext(ctx, http.MethodPut, "http://example.com/k", strings.NewReader("abcd"))
			}, func(*http.Response) error { return nil })
			if test.ok && (err != nil || tries != 1) || !test.ok && (!errors.Is(err, errStalled) || tries != 3) {
				t.Errorf("a byte every %v: %v after %d tries", test.wait, err, tries)
			}
		})
	}
}

// TestCanceledWait ends a wait between tries.
func TestCanceledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(bg)
		time.AfterFunc(10*time.Millisecond, cancel)
		c := NewClient(&Options{Transport: answers(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"30"}}, Request: r, Body: http.NoBody}, nil
		})})
		if _, err := NewObjects(c, plainWeb{"http://example.com/"}).Get(ctx, "k", kv.All()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestRedirects(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("another host was told %v", r.Header)
		}
		_, _ = w.Write([]byte("inner"))
	}))
	defer inner.Close()
	sign := func(r *http.Request) error { r.Header.Set("Authorization", "secret"); return nil }
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/there":
			if r.Header.Get("Authorization") != "secret" || r.Header.Get("Referer") != "" {
				t.Errorf("the same host was told %v", r.Header)
			}
			_, _ = w.Write([]byte("there"))
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/inner":
			http.Redirect(w, r, inner.URL+"/x?token=hidden", http.StatusTemporaryRedirect)
		case "/inner2":
			http.Redirect(w, r, "/inner", http.StatusTemporaryRedirect)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/broken":
			w.Header().Set("Location", "http://hidden:hidden:hidden")
			w.WriteHeader(http.StatusFound)
		}
	}
	byRule, _ := serve(t, Options{Sign: sign}, handler)
	var asked []string
	byHook, _ := serve(t, Options{Sign: sign, Redirect: func(to *url.URL) error {
		asked = append(asked, to.Path)
		if to.Path != "/x" && to.Path != "/inner" {
			return errors.New("outside of what is allowed")
		}
		return nil
	}}, handler)
	never, _ := serve(t, Options{Redirects: -1}, handler)
	stays, _ := serve(t, Options{Sign: sign, StayOnHost: true, Redirect: func(*url.URL) error { return nil }}, handler)
	for _, test := range []struct {
		o         *Objects
		key, want string
	}{
		{byRule, "here", "there"}, {byRule, "loop", ""}, {byRule, "inner", ""}, {byRule, "inner2", ""}, {byRule, "file", ""}, {byRule, "broken", ""},
		{byHook, "inner", "inner"}, {byHook, "inner2", "inner"}, {byHook, "here", ""}, {byHook, "file", ""}, {never, "here", ""},
		{stays, "here", "there"}, {stays, "inner", ""}, {stays, "inner2", ""},
	} {
		b, err := test.o.Get(bg, test.key, kv.All())
		if string(b) != test.want || (err == nil) != (test.want != "") || err != nil && (strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %q, %v", test.key, b, err)
		}
		if test.want == "" && test.o != never && test.key != "broken" && !errors.Is(err, ErrRedirect) {
			t.Errorf("%s: %v, want ErrRedirect", test.key, err)
		}
	}
	if want := []string{"/x", "/inner", "/x", "/there"}; !slices.Equal(asked, want) {
		t.Errorf("asked about %q, want %q", asked, want)
	}
}

func TestOrigins(t *testing.T) {
	for _, test := range []struct {
		from, to string
		same     bool
	}{
		{"http://a/x", "http://A/y", true}, {"http://a/x", "https://a/x", true}, {"https://a/x", "http://a/x", false}, {"http://a/x", "http://b/x", false},
		{"http://a/x", "http://a:6379/x", false}, {"http://a:80/x", "https://a:443/x", true}, {"http://a:81/x", "https://a/x", false}, {"http://a/x", "http://a.b/x", false},
	} {
		from, err1 := url.Parse(test.from)
		to, err2 := url.Parse(test.to)
		if err1 != nil || err2 != nil || sameOrigin(from, to) != test.same {
			t.Errorf("from %s to %s", test.from, test.to)
		}
	}
	for address, want := range map[string]bool{
		"8.8.8.8": true, "127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "0.0.0.0": false, "100.64.1.1": false,
		"224.0.0.1": false, "255.255.255.255": false, "::1": false, "fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false, "::ffff:100.64.1.1": false, "::ffff:8.8.8.8": true, "64:ff9b::7f00:1": false, "2606:4700::1111": true,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
		if err := onlyPublic("tcp", net.JoinHostPort(address, "80"), nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"https://joe:pw@h:1/a%2Fb?sig=x&y=z#f": "https://h:1/a%2Fb?…", "http://h/a": "http://h/a", "http://h/a?": "http://h/a?",
	} {
		u, err := url.Parse(in)
		if err != nil || Redact(u) != want {
			t.Errorf("%s: %s, %v", in, Redact(u), err)
		}
	}
}

// TestBatchModel compares random batches with slices of the value.
func TestBatchModel(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	value := make([]byte, 3000)
	for i := range value {
		value[i] = byte(rnd.Uint32())
	}
	o, _ := serve(t, Options{Gap: 50, MaxMerged: 300, Parallel: 3}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(value))
	})
	for range 60 {
		reqs := make([]kv.Request, rnd.IntN(30))
		for i := range reqs {
			off := rnd.Int64N(3000)
			n := rnd.Int64N(min(3000-off, 400) + 1)
			reqs[i] = kv.Request{Key: fmt.Sprint(rnd.IntN(3)), Range: []kv.Range{kv.Span(off, n), kv.Span(off, n), kv.Span(off, n), kv.From(off), kv.Last(n)}[rnd.IntN(5)]}
		}
		got := must.Get(o.GetMany(bg, reqs))(t)
		for i, q := range reqs {
			off, n, _ := q.Range.Resolve(3000)
			if got[i] == nil || !bytes.Equal(got[i], value[off:off+n]) {
				t.Fatalf("%v: %d bytes", q.Range, len(got[i]))
			}
			clear(got[i]) // each is the caller's own
		}
	}
}

// TestBounds lets no more requests run at a time than Parallel.
func TestBounds(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	o, _ := serve(t, Options{Parallel: 3}, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		_, _ = w.Write([]byte("x"))
		mu.Lock()
		running--
		mu.Unlock()
	})
	reqs := make([]kv.Request, 100)
	for i := range reqs {
		reqs[i].Key = fmt.Sprint(i)
	}
	if _, err := o.GetMany(bg, reqs); err != nil || most > 3 {
		t.Errorf("%d at a time, %v", most, err)
	}
	// The first failure ends a batch.
	reqs[50].Range = kv.From(5)
	if _, err := o.GetMany(bg, reqs); !errors.Is(err, kv.ErrRange) || !strings.Contains(err.Error(), `get "50"`) {
		t.Error(err)
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-3/9", "bytes 0-3/*", "bytes */9", "bytes 5-2/9", "bytes 0--1/0", "bytes 0-9223372036854775807/*", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		from, to, size, ok := parseContentRange(s)
		if ok && s != "bytes 0--1/0" && (from < 0 || to < from || to-from+1 <= 0 || size != -1 && size <= to) {
			t.Errorf("%q is %d-%d/%d", s, from, to, size)
		}
	})
}

func TestListArguments(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a/b": "a/b", "é": "é", "\xc3": "", "a\xc3": "a", "a/\xff": "a/\U0010ffff", "a\x00b": "a", "\ufffd": "\ufffd", "\ufffd\xff": "\ufffd\U0010ffff",
	} {
		prefix, after := listArguments(kv.ListOptions{Prefix: in, After: in})
		if after != want || !strings.HasPrefix(in, prefix) || after > in || prefix != strings.TrimSuffix(want, "\U0010ffff") {
			t.Errorf("%q: prefix %q, after %q, want %q", in, prefix, after, want)
		}
	}
}
