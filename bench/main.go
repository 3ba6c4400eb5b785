// Command bench measures zarrdb on fixed work through its public interface and
// puts the figures of other programs on the same work beside them.
//
//	go run ./bench [-quick] [-dir DIR] [-only read,versions] [-out bench/RESULTS.md] [-python PYTHON] [-python2 PYTHON]
//
// The figures of others are in peers.json: they were taken on another day, so
// compare ratios between rows of one column rather than single numbers, and
// read the limits of this machine, measured in the same run, first. Those that
// read reference sets and foreign formats are measured in the same run, on the
// same files, with -python and what requirements.txt names.
//
// Two workloads take minutes and run only if -only names them: references100M, a
// hundred million references, which needs some 3 GB of disk; and formats, reading
// in place what is stored in foreign formats, and the import of a long history.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// result is one figure.
type result struct {
	Workload, Variant, Metric string
	Value                     float64
	Unit                      string
}

// bench is one run.
type bench struct {
	dir     string // scratch
	quick   bool
	python  string // what runs peers.py and python.py, "" for nothing
	python2 string // the same with zarr-python 2
	results []result
	live    []peer // figures of others in this run
}

func (b *bench) add(workload, variant, metric string, value float64, unit string) {
	b.results = append(b.results, result{workload, variant, metric, value, unit})
	fmt.Printf("%-10s %-18s %-28s %12.4g %s\n", workload, variant, metric, value, unit)
}

// workloads in the order in which they run; those that are asked run only if
// -only names them.
var workloads = []struct {
	name  string
	run   func(context.Context, *bench)
	asked bool
}{
	{"limits", limits, false},
	{"field", readWrite, false},
	{"versions", versions, false},
	{"commits", commits, false},
	{"space", space, false},
	{"lookup", lookup, false},
	{"metadata", metadata, false},
	{"references", references, false},
	{"references100M", manyReferences, true},
	{"netcdf", netcdf, false},
	{"formats", foreignFormats, true},
	{"serving", serving, false},
	{"python", python, false},
}

func main() {
	log.SetFlags(0)
	if acts, err := act(); err != nil {
		log.Fatal("bench: ", err)
	} else if acts {
		return
	}
	quick := flag.Bool("quick", false, "small sizes, to see that it runs")
	dir := flag.String("dir", "", "where to work (default a temporary directory)")
	only := flag.String("only", "", "comma-separated names of workloads")
	out := flag.String("out", "", "write the table to this file")
	with := flag.String("python", "", "measure other programs with this Python")
	with2 := flag.String("python2", "", "measure zarr-python 2 with this Python")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &bench{quick: *quick, python: *with, python2: *with2}, *dir, *only, *out); err != nil {
		log.Fatal("bench: ", err)
	}
}

func run(ctx context.Context, b *bench, dir, only, out string) error {
	scratch, err := os.MkdirTemp(dir, "zarrdb-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b.dir = scratch
	names := strings.Split(only, ",")
	for _, w := range workloads {
		if (only != "" || w.asked) && !slices.Contains(names, w.name) {
			continue
		}
		if err := attempt(func() { w.run(ctx, b) }); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		runtime.GC()
	}
	if out == "" {
		return nil
	}
	table, err := report(b.results, b.live)
	if err != nil {
		return err
	}
	return os.WriteFile(out, table, 0o644)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
