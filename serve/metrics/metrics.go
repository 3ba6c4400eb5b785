// Package metrics counts the requests of a server, and prints the counts in the
// text format of Prometheus.
package metrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// bounds are those of the latency histogram, in seconds.
var bounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// Set counts the requests of a server. The zero Set is ready, and safe for
// concurrent use.
type Set struct {
	mu     sync.Mutex
	routes map[route]*counts
}

// route is the key by which requests are counted. The server chooses its values,
// so that clients cannot make many.
type route struct {
	name   string
	status int
}

type counts struct {
	requests, bytes int64
	seconds         float64
	within          []int64 // by bound
}

// Observe counts one request: route is its kind, bytes those of the answer.
func (s *Set) Observe(name string, status int, bytes int64, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.routes == nil {
		s.routes = map[route]*counts{}
	}
	c := s.routes[route{name, status}]
	if c == nil {
		c = &counts{within: make([]int64, len(bounds))}
		s.routes[route{name, status}] = c
	}
	c.requests++
	c.bytes += bytes
	c.seconds += took.Seconds()
	for i, bound := range bounds {
		if took.Seconds() <= bound {
			c.within[i]++
		}
	}
}

// Value is one more counter or gauge.
type Value struct {
	Name, Help, Type string
	// Labels are pairs of a name and a value.
	Labels []string
	Value  float64
}

// Print writes all counts, and values of others. Values of one name follow each other.
func (s *Set) Print(w io.Writer, values []Value) error {
	var b strings.Builder
	s.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(s.routes), func(a, b route) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return a.status - b.status
	})
	each := func(name, kind, help string, fn func(labels string, c *counts)) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		for _, k := range keys {
			fn(labels("route", k.name, "status", fmt.Sprint(k.status)), s.routes[k])
		}
	}
	each("zarrdb_requests_total", "counter", "Requests that were answered.", func(l string, c *counts) {
		fmt.Fprintf(&b, "zarrdb_requests_total{%s} %d\n", l, c.requests)
	})
	each("zarrdb_sent_bytes_total", "counter", "Bytes of bodies that were sent.", func(l string, c *counts) {
		fmt.Fprintf(&b, "zarrdb_sent_bytes_total{%s} %d\n", l, c.bytes)
	})
	each("zarrdb_request_seconds", "histogram", "Time from the header of a request to the end of the answer.", func(l string, c *counts) {
		for i, bound := range bounds {
			fmt.Fprintf(&b, "zarrdb_request_seconds_bucket{%s,le=\"%g\"} %d\n", l, bound, c.within[i])
		}
		fmt.Fprintf(&b, "zarrdb_request_seconds_bucket{%s,le=\"+Inf\"} %d\n", l, c.requests)
		fmt.Fprintf(&b, "zarrdb_request_seconds_sum{%s} %g\nzarrdb_request_seconds_count{%[1]s} %[3]d\n", l, c.seconds, c.requests)
	})
	s.mu.Unlock()
	last := ""
	for _, v := range values {
		if v.Name != last {
			fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", v.Name, v.Help, v.Name, v.Type)
			last = v.Name
		}
		fmt.Fprintf(&b, "%s{%s} %g\n", v.Name, labels(v.Labels...), v.Value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labels(pairs ...string) string {
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, pairs[i]+`="`+escaper.Replace(pairs[i+1])+`"`)
	}
	return strings.Join(list, ",")
}
