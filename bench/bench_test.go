package main

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/bench/field"
	"github.com/zarrdb/zarrdb/engine"
)

// Workloads start this program again in other roles.
func TestMain(m *testing.M) {
	acts, err := act()
	switch {
	case err != nil:
		log.Fatal(err)
	case !acts:
		os.Exit(m.Run())
	}
}

// Every workload runs on small sizes and what it reads back is what was
// written; the table names the best peer.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some hundred MiB")
	}
	b := &bench{dir: t.TempDir(), quick: true, rounds: 1, planes: 32, only: "blosc-lz4,trees"}
	for _, w := range workloads {
		if w.name == "limits" || w.name == "remote" { // the latter needs a server
			continue
		}
		if err := attempt(func() { w.run(context.Background(), b) }); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
	}
	table := string(b.report("table.svg"))
	for _, want := range []string{
		"| read all, fresh memory | blosc-lz4 |", "| list | 100 arrays |", "| versions: expire + gc |", "| space: ", "| lookup: ",
		"| formats: chunk p50 | precomputed, raw |", "| serving: get of 100 B p50 | local socket |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
}

// A row names the best peer, how many times better we are, and what peers do better in bold.
func TestReport(t *testing.T) {
	rows := []*measure{
		{Workload: "w", Variant: "v", Metric: "rate", Unit: "GB/s", Samples: map[string][]float64{inProcess: {9, 8, 7}, inPython: {1, 1, 1}, "slow": {1}, "fast": {4, 4, 4}}},
		{Workload: "w", Variant: "v", Metric: "time", Unit: "us", Samples: map[string][]float64{inProcess: {8}, "slow": {9}, "fast": {4}}},
		{Workload: "w", Variant: "v", Metric: "size", Unit: "of raw", Samples: map[string][]float64{inProcess: {0.5}}},
	}
	b := &bench{rounds: 3, part: steps{Rows: rows}}
	page := string(b.report("table.svg"))
	for _, want := range []string{
		"| w: rate | v | 8.00 ±12% GB/s (2.00) |  | **1.00 ±0% (0.25)** |  | 4.00 ±0% GB/s (fast) |  |",
		"| w: time | v | **8.00 us (0.50)** |  |  |  | 4.00 us (fast) |  |",
		"| w: size | v | 0.500 of raw |  |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if svg := string(picture(rows)); strings.Count(svg, ">w: ") != 2 || !strings.Contains(svg, ">w: time, v<") {
		t.Errorf("the picture has other bars than those of rate and time:\n%s", svg)
	}
}

// BenchmarkWrite writes the field durably, as the workload does, into a
// directory of TMPDIR.
func BenchmarkWrite(b *testing.B) {
	data := filled(field.Shape[0])
	defer release(data)
	for _, l := range (&bench{}).layouts() {
		planes := field.Shape[0]
		if l.planes > 0 {
			planes = l.planes
		}
		part := data[:len(data)/field.Shape[0]*planes]
		b.Run(l.name, func(b *testing.B) {
			b.SetBytes(int64(len(part)))
			for b.Loop() {
				dir := filepath.Join(b.TempDir(), "field.zdb")
				b.StopTimer()
				db, err := engine.Create(context.Background(), dir, &engine.Options{CacheBytes: -1})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				l.write(context.Background(), db, part, planes)
				b.StopTimer()
				if err := errors.Join(db.Close(), os.RemoveAll(dir)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// The first error ends a workload, in whatever goroutine; other panics go on.
func TestAttempt(t *testing.T) {
	broken := errors.New("broken")
	went := false
	err := attempt(func() {
		named("part", func() {
			parallel(2, func(i int) {
				if i == 1 {
					check(broken)
				}
			})
		})
		went = true
	})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "part: ") || went {
		t.Errorf("attempt returned %v; it went on: %v", err, went)
	}
	defer func() {
		if r := recover(); r != "a bug" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = attempt(func() { panic("a bug") })
}
