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
	b := &bench{dir: t.TempDir(), quick: true}
	for _, w := range workloads {
		if w.name == "limits" {
			continue
		}
		if err := attempt(func() { w.run(context.Background(), b) }); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
	}
	table, err := report(b.results, b.live)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## write", "## read", "| blosc-lz4 | hot |", "## versions", "| expire + gc |", "## space", "## lookup", "## metadata", "## formats", "| n5, gzip | chunk p50 |", "| local socket | get of 100 B p50 |"} {
		if !strings.Contains(string(table), want) {
			t.Errorf("the table has no %q", want)
		}
	}
}

// What others reach in the same run is preferred to what is recorded, and has a
// table of its own.
func TestBeside(t *testing.T) {
	live := []peer{{"netcdf", "v", "read", "GB/s", "one", 1, "more"}, {"netcdf", "v", "read", "GB/s", "two", 4, "more"}, {"netcdf", "v", "only theirs", "us", "two", 7, "less"}}
	table, err := report([]result{{"netcdf", "v", "read", 8, "GB/s"}, {"netcdf", "v", "size", 0.5, "of raw"}}, live)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| v | read | 8.00 GB/s | 4.00 GB/s (two) | 2.00 |", "| one | two |", "| v | read | 8.00 GB/s | 1.00 | 4.00 |", "| v | only theirs (us) |  | | 7.00 |"} {
		if !strings.Contains(string(table), want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
}

func TestBestPeer(t *testing.T) {
	peers := []peer{
		{"w", "v", "rate", "GB/s", "slow", 1, "more"}, {"w", "v", "rate", "GB/s", "fast", 2, "more"},
		{"w", "v", "time", "us", "slow", 9, "less"}, {"w", "v", "time", "us", "fast", 3, "less"},
	}
	for _, metric := range []string{"rate", "time"} {
		if p, ok := best(peers, result{"w", "v", metric, 1, ""}); !ok || p.System != "fast" {
			t.Errorf("%s: %+v", metric, p)
		}
	}
	if _, ok := best(peers, result{"w", "other", "rate", 1, ""}); ok {
		t.Error("found a peer for other work")
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
