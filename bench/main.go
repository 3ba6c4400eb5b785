// Command bench measures zarrdb beside other programs on the same work, in one run.
//
//	go run ./bench [-quick] [-rounds 5] [-planes 256] [-layouts raw,blosc-lz4] [-dir DIR] [-only table,versions] [-keep FILE] [-out bench/RESULTS.md] [-python PYTHON] [-python2 PYTHON]
//
// With -python and -python2, Pythons with the packages that requirements.txt and run.sh name, the
// workload "table" lets every program do the same jobs in turn: writes and reads of arrays, single
// chunks, small selections, trees of arrays. The other workloads have their own peers.
//
// With -keep, a run that was interrupted goes on where it was: the file has the rows of the
// steps that are done. A step is a workload, or a layout of the table.
//
// Three workloads take minutes and run only if -only names them: references100M, a
// hundred million references, which needs some 3 GB of disk; formats, reading
// stores of foreign formats in place, and the import of a long history; and remote,
// databases in a bucket, whose parts -layouts names: scripts/remote.sh --figures runs it.
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

	"github.com/zarrdb/zarrdb/bench/field"
)

// bench is one run.
type bench struct {
	dir     string // scratch
	quick   bool
	rounds  int    // of the table
	planes  int    // of the field, in the table
	only    string // layouts of the table, with commas; all if empty
	python  string // runs the scripts, "" for none
	python2 string // the same with zarr-python 2
	pattern string // of the rows of "beside", "" for all
	kept    string // file of the steps that are done, "" for none
	part    steps
}

// add records a figure of this process.
func (b *bench) add(workload, variant, metric string, value float64, unit string) {
	b.sample(workload, variant, metric, unit, inProcess, value)
	fmt.Printf("%-10s %-18s %-28s %12.4g %s\n", workload, variant, metric, value, unit)
}

// workloads in the order in which they run; workloads with asked run only if
// -only names them.
var workloads = []struct {
	name  string
	run   func(context.Context, *bench)
	asked bool
}{
	{"limits", limits, false},
	{"table", fair, false},
	{"versions", versions, false},
	{"commits", commits, false},
	{"space", space, false},
	{"lookup", lookup, false},
	{"references", references, false},
	{"references100M", manyReferences, true},
	{"netcdf", netcdf, false},
	{"hdf5", hdf5Files, false},
	{"formats", foreignFormats, true},
	{"serving", serving, false},
	{"remote", remotes, true},
	{"beside", second, false},
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
	rounds := flag.Int("rounds", 5, "how often each job of the table is done")
	planes := flag.Int("planes", field.Shape[0], "how much of the field the table writes and reads, in pieces of 4 MiB")
	layouts := flag.String("layouts", "", "comma-separated layouts of the table, and trees (default all)")
	keep := flag.String("keep", "", "file of the steps that are done; a later run with the file leaves them out")
	rows := flag.String("rows", "", "pattern of the rows that the workload beside measures (default all)")
	with := flag.String("python", "", "measure other programs with this Python")
	with2 := flag.String("python2", "", "measure zarr-python 2 with this Python")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &bench{quick: *quick, rounds: *rounds, planes: *planes, only: *layouts, python: *with, python2: *with2, pattern: *rows, kept: *keep}, *dir, *only, *out); err != nil {
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
	if err := b.load(); err != nil {
		return err
	}
	names := strings.Split(only, ",")
	for _, w := range workloads {
		if (only != "" || w.asked) && !slices.Contains(names, w.name) {
			continue
		}
		if err := attempt(func() { b.step(w.name, func() { w.run(ctx, b) }) }); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		runtime.GC()
	}
	if out == "" {
		return nil
	}
	drawn := strings.TrimSuffix(out, filepath.Ext(out)) + ".svg"
	if err := os.WriteFile(drawn, picture(b.part.Rows), 0o644); err != nil {
		return err
	}
	return os.WriteFile(out, b.report(filepath.Base(drawn)), 0o644)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
