// Package metrics counts the requests of a server for Prometheus.
package metrics

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Set counts the requests of a server. It is safe for concurrent use. The values of
// label route are chosen by the server, so that clients cannot make many.
type Set struct {
	registry        *prometheus.Registry
	requests, bytes *prometheus.CounterVec
	seconds         *prometheus.HistogramVec
}

// New returns a Set without requests.
func New() *Set {
	labels := []string{"route", "status"}
	s := &Set{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "zarrdb_requests_total", Help: "Requests that were answered."}, labels),
		bytes:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "zarrdb_sent_bytes_total", Help: "Bytes of bodies that were sent."}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "zarrdb_request_seconds", Help: "Time from the header of a request to the end of the answer.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, labels),
	}
	s.registry.MustRegister(s.requests, s.bytes, s.seconds)
	return s
}

// Observe counts the request of ctx: route is its kind, bytes the length of the answer.
func (s *Set) Observe(ctx context.Context, route string, status int, bytes int64, took time.Duration) {
	if a, ok := ctx.Value(answeredKey{}).(*answered); ok {
		a.status, a.bytes = status, bytes
	}
	code := strconv.Itoa(status)
	s.requests.WithLabelValues(route, code).Inc()
	s.bytes.WithLabelValues(route, code).Add(float64(bytes))
	s.seconds.WithLabelValues(route, code).Observe(took.Seconds())
}

// Handler answers with all counts, and the values of collect.
func (s *Set) Handler(collect Collector) http.Handler {
	more := prometheus.NewRegistry()
	more.MustRegister(collect)
	all := prometheus.Gatherers{s.registry, more}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Collector calls put with each further value, and the name of a database or "". A name that
// ends in _total is a counter, another name a gauge. Concurrent requests call a Collector
// concurrently.
type Collector func(put func(name, help, database string, value float64))

// Describe implements prometheus.Collector.
func (c Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	c(func(name, help, database string, value float64) {
		kind, labels := prometheus.GaugeValue, prometheus.Labels(nil)
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		if database != "" {
			labels = prometheus.Labels{"database": strings.ToValidUTF8(database, "\ufffd")}
		}
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), kind, value)
	})
}
