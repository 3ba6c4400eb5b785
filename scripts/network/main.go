// Command network stands for the network between a program and an HTTP server: it passes requests on, counts and
// delays them, and does to some of them what networks do. It prints its URL, and ends with its standard input.
//
//	go run ./scripts/network -to URL [-delay 20ms] [-seed 1] [-lose 0.02] [-unheard 0.02] [-cut 0.02] [-repeat 0.02] [-late 0.02] [-busy 0.02] [-slow 0.02]
//
// The shares are those of requests that are
//
//	lose     not passed on: the connection ends
//	unheard  passed on, and the answer is lost
//	cut      cut in the middle: the body of the request, or that of the answer
//	repeat   passed on twice, as by a proxy that tries again; the second answer counts
//	late     passed on up to two seconds after their connection ended
//	busy     answered by 500, 503 or 429
//	slow     passed on up to a second later, so that others overtake them
//
// A POST to /-/set?lose=0.5&delay=0s&down=1 changes them at any time; down=1 takes the network away. GET /-/counts
// returns what came since the last call. Rounds are the length of the longest row of requests of which each began
// after the one before had ended.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

var faults = []string{"lose", "unheard", "cut", "repeat", "late", "busy", "slow"}

// counts are what GET /-/counts returns.
type counts struct {
	Requests, Rounds int
	Sent, Received   int64 // bytes of bodies of requests, and of answers
	Methods, Faults  map[string]int
}

type network struct {
	to    *url.URL
	proxy *httputil.ReverseProxy
	plain http.Client

	mu    sync.Mutex
	rnd   *rand.Rand
	delay time.Duration
	down  bool
	share map[string]float64
	n     counts
}

func main() {
	log.SetFlags(0)
	n := &network{share: map[string]float64{}}
	n.clear()
	to := flag.String("to", "", "URL of the server")
	listen := flag.String("listen", "127.0.0.1:0", "address to listen at")
	seed := flag.Uint64("seed", 1, "of the choice of requests")
	flag.DurationVar(&n.delay, "delay", 0, "added to each request")
	shares := map[string]*float64{}
	for _, f := range faults {
		shares[f] = flag.Float64(f, 0, "share of requests")
	}
	flag.Parse()
	for f, s := range shares {
		n.share[f] = *s
	}
	n.rnd = rand.New(rand.NewPCG(*seed, 0))
	var err error
	if n.to, err = url.Parse(*to); err != nil || n.to.Host == "" {
		log.Fatalf("network: -to %q is no URL", *to)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10, DisableCompression: true}
	n.plain.Transport = transport
	n.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // the signature counts the host that the client names
			r.Out.URL.Scheme, r.Out.URL.Host = n.to.Scheme, n.to.Host
		},
		Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal("network: ", err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal("network: ", http.Serve(l, n))
}

func (n *network) clear() { n.n = counts{Methods: map[string]int{}, Faults: map[string]int{}} }

// ServeHTTP passes a request on, or not.
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/-/counts":
		n.mu.Lock()
		defer n.mu.Unlock()
		_ = json.NewEncoder(w).Encode(n.n)
		n.clear()
		return
	case "/-/set":
		n.set(w, r.URL.Query())
		return
	}
	delay, fault, x, round := n.begin(r)
	body := &counted{ReadCloser: r.Body}
	r.Body = body
	out := &answer{ResponseWriter: w}
	defer func() { n.end(round, body.n, out.n) }()
	time.Sleep(delay)
	switch fault {
	case "":
		n.proxy.ServeHTTP(out, r)
	case "slow":
		time.Sleep(time.Duration(x * float64(time.Second)))
		n.proxy.ServeHTTP(out, r)
	case "busy":
		http.Error(out, "busy", []int{500, 503, 429}[int(x*3)])
	case "cut":
		if r.ContentLength > 1 { // it ends with fewer bytes than it said
			r.Body = io.NopCloser(io.LimitReader(r.Body, int64(x*float64(r.ContentLength))))
			n.proxy.ServeHTTP(nowhere{}, r)
			panic(http.ErrAbortHandler)
		}
		out.share = x
		n.proxy.ServeHTTP(out, r)
		if out.share > 0 {
			panic(http.ErrAbortHandler)
		}
	case "lose", "down":
		panic(http.ErrAbortHandler)
	case "unheard":
		n.proxy.ServeHTTP(nowhere{}, r)
		panic(http.ErrAbortHandler)
	case "repeat", "late":
		held, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		again := r.Clone(r.Context())
		again.URL.Scheme, again.URL.Host, again.RequestURI, again.Body = n.to.Scheme, n.to.Host, "", io.NopCloser(bytes.NewReader(held))
		if fault == "late" {
			again = again.WithContext(context.Background())
			go func() {
				time.Sleep(time.Duration(x * 2 * float64(time.Second)))
				n.send(again)
			}()
			panic(http.ErrAbortHandler)
		}
		n.send(again)
		r.Body = io.NopCloser(bytes.NewReader(held))
		n.proxy.ServeHTTP(out, r)
	}
}

// send sends a request whose answer nobody hears.
func (n *network) send(r *http.Request) {
	if resp, err := n.plain.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func (n *network) begin(r *http.Request) (delay time.Duration, fault string, x float64, round int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n.Requests++
	n.n.Methods[r.Method]++
	x = n.rnd.Float64()
	for _, f := range faults {
		if fault == "" && n.rnd.Float64() < n.share[f] {
			fault = f
		}
	}
	if n.down {
		fault = "down"
	}
	if fault != "" {
		n.n.Faults[fault]++
	}
	return n.delay, fault, x, n.n.Rounds + 1
}

func (n *network) end(round int, sent, received int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n.Rounds = max(n.n.Rounds, round)
	n.n.Sent += sent
	n.n.Received += received
}

func (n *network) set(w http.ResponseWriter, q url.Values) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range q {
		var err error
		switch name {
		case "delay":
			n.delay, err = time.ParseDuration(q.Get(name))
		case "down":
			n.down = q.Get(name) == "1"
		case "all":
			var x float64
			x, err = strconv.ParseFloat(q.Get(name), 64)
			for _, f := range faults {
				n.share[f] = x
			}
		default:
			n.share[name], err = strconv.ParseFloat(q.Get(name), 64)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
}

// counted counts the bytes of a body.
type counted struct {
	io.ReadCloser
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}

// answer counts the bytes of an answer, and ends it after a share of its length, if that is set.
type answer struct {
	http.ResponseWriter
	n     int64
	share float64
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) Write(p []byte) (int, error) {
	if a.share > 0 {
		length, _ := strconv.ParseInt(a.Header().Get("Content-Length"), 10, 64)
		if end := int64(a.share * float64(length)); a.n+int64(len(p)) > end {
			n, _ := a.ResponseWriter.Write(p[:max(0, end-a.n)])
			a.n += int64(n)
			return n, io.ErrShortWrite
		}
	}
	n, err := a.ResponseWriter.Write(p)
	a.n += int64(n)
	return n, err
}

// nowhere is an answer that nobody hears.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
