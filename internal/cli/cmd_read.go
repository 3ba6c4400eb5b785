package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/npy"
)

func readCmd() *cobra.Command {
	var src arrayFlags
	var decode, tidy, guard bool
	var also []string
	cmd := &cobra.Command{
		Use:   "read TARGET [--select SEL] [-o FILE]",
		Short: "Read an array or a part of it",
		Long: `Read an array, or the part of it that --select names, and print it or write it to
a file whose ending chooses the form: .npy, .csv, .jsonl (one JSON value a line
and element, in C order), .png, .parquet, .arrow, or - for raw bytes (C order,
little-endian; elements of varying length as in .jsonl).
A .csv file has up to two dimensions as a grid, more (or with --tidy) as a line
per element behind its coordinates; structs have a column per field. So have
.parquet and .arrow files, in which labels are times and numbers; --also adds
arrays of the same dimensions as columns. A .png file has a pixel for each element.

SEL is numpy's basic indexing, or DIM=LO:HI by dimension name. Quoted bounds are
labels, looked up in the array beside this one that has the name of the
dimension, and both included: time='2020-01':'2020-03',lat='50':'45'. As with
xarray's sel the first comes first in the array: where lat goes down from 90,
lat='45':'50' selects nothing, which is said on standard error.

--decode-cf shows the values that xarray shows: scale_factor, add_offset,
_FillValue, missing_value and _Unsigned give floats, missing values NaN; units
such as "days since 2000-01-01" give datetime64, units such as "hours" beside a
dtype of timedelta64 give spans of time, and a dtype of bool gives bool.

With --session ID and --guard the session relies on what was read: its commit is
a conflict if somebody changes one of the chunks, or the array's metadata,
meanwhile. What the session writes itself needs no guard.`,
		Example: `  zarrdb read weather.zdb:temp --select '0,100:110,::2'
  zarrdb read weather.zdb@v1.0:temp --select 'time=0:24,lat=5' -o t.npy
  zarrdb read weather.zdb:temp --select "time='2020-02'" --decode-cf --tidy -o feb.csv
  zarrdb read weather.zdb:temp --also wind,rain --decode-cf -o weather.parquet
  zarrdb read ./era5.zarr/temp -o - | wc -c`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if guard && src.session == "" {
				return usagef("read: --guard is about a session, named by --session ID")
			}
			s, a, err := src.array(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			r, out := reading{a: a, whole: src.sel == "", tidy: tidy, beside: s.Sibling}, src.out
			if guard {
				r.beside = guarded(s)
			}
			if tidy && !strings.EqualFold(filepath.Ext(out), ".csv") {
				return usagef("read: --tidy is a form of -o FILE.csv")
			}
			if r.sel, err = parseSelection(cmd, src.sel, a, r.beside); err != nil {
				return err
			}
			if decode {
				if r.dec, err = cf.NewDecoderBeside(cmd.Context(), a, r.beside); err != nil {
					return fmt.Errorf("read /%s: %w", a.Path(), err)
				}
			}
			if r.shape, err = a.Resolve(r.sel); err != nil {
				return err
			}
			if len(also) > 0 && !slices.Contains(tableFormats, strings.ToLower(filepath.Ext(out))) {
				return usagef("read: --also is for -o FILE.parquet and FILE.arrow")
			}
			if err := r.alsoRead(cmd, s, also, decode); err != nil {
				return err
			}
			if out != "" && out != "-" {
				if err := s.Apart(cmd.Context(), out); err != nil {
					return fmt.Errorf("read -o %w", err)
				}
			}
			if err := r.write(cmd, out); err != nil || !guard {
				return err
			}
			for _, part := range append(r.also, &r) {
				if err := s.GuardRead(cmd.Context(), part.a, r.sel); err != nil {
					return err
				}
			}
			return nil
		},
	}
	src.register(cmd, "FILE.npy, .csv, .jsonl, .png, .parquet or .arrow, or - for raw bytes on standard output")
	cmd.Flags().StringSliceVar(&also, "also", nil, "`NAMES` of arrays beside this one that are further columns of a .parquet or .arrow file")
	cmd.Flags().BoolVar(&decode, "decode-cf", false, "decode values by their CF attributes")
	cmd.Flags().BoolVar(&tidy, "tidy", false, "write .csv with a line per element behind its coordinates")
	cmd.Flags().BoolVar(&guard, "guard", false, "fail the commit of the session with a conflict if the read part changes meanwhile")
	return cmd
}

// arrayFlags are the flags of commands that read a part of an array.
type arrayFlags struct {
	sourceFlags
	sel, out string
}

func (f *arrayFlags) register(cmd *cobra.Command, files string) {
	cmd.Flags().StringVarP(&f.sel, "select", "s", "", "which elements (default all)")
	methodFlag(cmd)
	cmd.Flags().StringVarP(&f.out, "output", "o", "", files)
	f.sourceFlags.register(cmd)
}

// array opens the array that a target names.
func (f *arrayFlags) array(cmd *cobra.Command, s string) (*engine.Source, *zarr.Array, error) {
	src, n, err := f.node(cmd, s)
	if err != nil {
		return nil, nil, err
	}
	a, ok := n.Array()
	if !ok {
		src.Close()
		return nil, nil, fmt.Errorf("%s /%s: it is a group, not an array; \"zarrdb tree %s\" lists the arrays in it", cmd.Name(), n.Path(), shellWord(zurl.Redact(s)))
	}
	return src, a, nil
}

// guarded opens the coordinates of an array, and guards their labels, which a
// read goes by.
func guarded(s *engine.Source) cf.Opener {
	return func(ctx context.Context, name string) (*zarr.Node, error) {
		n, err := s.Sibling(ctx, name)
		if err != nil {
			return nil, err
		}
		if a, ok := n.Array(); ok {
			err = s.GuardRead(ctx, a, zarr.Sel())
		}
		return n, err
	}
}

// reading is the state of one read command.
type reading struct {
	a     *zarr.Array
	sel   zarr.Selection
	shape []int64
	whole bool // no selection was given
	tidy  bool
	slab  int64       // bytes read at a time; see [zarr.Array.Parts]
	dec   *cf.Decoder // nil for stored values
	// beside opens a coordinate of the array.
	beside cf.Opener
	// also are further columns of a table.
	also []*reading
	// done, if set, is called with the number of elements written.
	done func(elements int64)
}

func (r *reading) report(elements int64) {
	if r.done != nil {
		r.done(elements)
	}
}

// typ is the data type of the result.
func (r *reading) typ() dtype.Type {
	if r.dec != nil {
		return r.dec.Type()
	}
	return r.a.Type()
}

func (r *reading) write(cmd *cobra.Command, out string) error {
	ctx := cmd.Context()
	form := r.csv
	switch ext := strings.ToLower(filepath.Ext(out)); {
	case strings.Contains(out, "://"):
		return usagef("-o %s: a file of this machine is written, not a URL", zurl.Redact(out))
	case out == "":
		return r.print(ctx, cmd.OutOrStdout())
	case out == "-":
		form = r.raw
	case ext == ".npy":
		form = r.npy
	case ext == ".csv":
	case ext == ".jsonl":
		form = r.lines
	case ext == ".png":
		form = r.png
	case slices.Contains(tableFormats, ext):
		format, err := tableForm(ctx, ext)
		if err != nil {
			return err
		}
		form = func(ctx context.Context, w io.Writer) error { return r.table(ctx, w, format) }
	default:
		return usagef("-o %s: the name must end in .npy, .csv, .jsonl, .png, .parquet or .arrow, or be -", out)
	}
	if out == "-" {
		w := bufio.NewWriterSize(cmd.OutOrStdout(), 256<<10)
		return errors.Join(form(ctx, w), w.Flush())
	}
	path := out
	if fi, err := os.Stat(path); err != nil || fi.Mode().IsRegular() {
		if err := r.fits(path, strings.ToLower(filepath.Ext(out))); err != nil {
			return err
		}
	}
	bar := newProgress(cmd, "reading", "elements")
	err := writeFile(path, func(w io.Writer) error {
		written := countWriter{w: w}
		r.done = func(elements int64) {
			bar.update(engine.Progress{Keys: elements, TotalKeys: product(r.shape), Bytes: written.n})
		}
		return form(ctx, &written)
	})
	bar.finish(err)
	return err
}

// countWriter counts the bytes that it passes on.
type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// slabBytes is about the bytes written at a time.
const slabBytes = 64 << 20

// raw writes elements in C order, block by block, in bounded memory.
func (r *reading) raw(ctx context.Context, w io.Writer) error {
	if r.a.Type().Variable() {
		return r.lines(ctx, w)
	}
	n := int64(0)
	return r.blocks(ctx, func(block *reading) error {
		b, err := block.bytes(ctx)
		if err == nil {
			err = r.inNumpy(b)
		}
		if err == nil {
			_, err = w.Write(b)
		}
		n += product(block.shape)
		r.report(n)
		return err
	})
}

// inNumpy returns an error for decoded times that numpy does not have.
func (r *reading) inNumpy(b []byte) error {
	if r.dec == nil {
		return nil
	}
	if err := r.dec.InNumpy(b); err != nil {
		return fmt.Errorf("read /%s: %w: use .csv or text", r.a.Path(), err)
	}
	return nil
}

// blocks calls fn with the parts of a reading in C order, each of about slabBytes.
func (r *reading) blocks(ctx context.Context, fn func(block *reading) error) error {
	for p, err := range r.a.Parts(r.sel, r.slab) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = fn(&reading{a: r.a, dec: r.dec, sel: p.Selection, shape: p.Shape})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxBytes bounds the bytes read into memory at once.
const maxBytes = min(16<<30, math.MaxInt)

// bytes reads the selection at once.
func (r *reading) bytes(ctx context.Context) ([]byte, error) {
	size := int64(r.a.Type().Size())
	for _, n := range r.shape {
		if n > 0 && size > maxBytes/n {
			return nil, fmt.Errorf("read /%s: a result of shape %v does not fit into memory: use --select", r.a.Path(), r.shape)
		}
		size *= n
	}
	b := mmap.Make[byte](int(size))
	if err := r.a.ReadBytes(ctx, r.sel, b); err != nil || r.dec == nil {
		return b, err
	}
	b, err := r.dec.Append(nil, b)
	if err != nil {
		err = fmt.Errorf("read /%s: %w", r.a.Path(), err)
	}
	return b, err
}

// lines writes one JSON value a line.
func (r *reading) lines(ctx context.Context, w io.Writer) error {
	var line []byte
	return r.eachJSON(ctx, func(v []byte) error {
		line = append(append(line[:0], v...), '\n')
		_, err := w.Write(line)
		return err
	})
}

// eachJSON calls fn with every element as JSON, in C order. The slice is reused.
func (r *reading) eachJSON(ctx context.Context, fn func([]byte) error) error {
	return r.elements(ctx, r.typ().AppendJSON, fn)
}

// each calls fn with every element as people see it, in C order. The slice is
// reused.
func (r *reading) each(ctx context.Context, fn func([]byte) error) error {
	t := r.typ()
	return r.elements(ctx, func(dst, elem []byte) ([]byte, error) { return elementText(t, r.dec, dst, elem) }, fn)
}

func (r *reading) elements(ctx context.Context, print func(dst, elem []byte) ([]byte, error), fn func([]byte) error) error {
	t := r.typ()
	var buf []byte
	n := int64(0)
	emit := func(elem []byte) (err error) {
		if n++; n%(1<<16) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.report(n)
		}
		if buf, err = print(buf[:0], elem); err != nil {
			return err
		}
		return fn(buf)
	}
	err := r.blocks(ctx, func(block *reading) error {
		if t.Variable() {
			v, err := block.a.ReadVar(ctx, block.sel)
			if err != nil {
				return err
			}
			for i := range v.Len() {
				if err := emit(v.At(i)); err != nil {
					return err
				}
			}
			return nil
		}
		b, err := block.bytes(ctx)
		if err != nil {
			return err
		}
		for size := t.Size(); len(b) > 0; b = b[size:] {
			if err := emit(b[:size]); err != nil {
				return err
			}
		}
		return nil
	})
	r.report(n)
	return err
}

func (r *reading) npy(ctx context.Context, w io.Writer) error {
	switch r.a.Type().Kind() {
	case dtype.String:
		return r.npyText(ctx, w)
	case dtype.Bytes:
		return r.npyBytes(ctx, w)
	}
	if err := r.inNumpy(nil); err != nil {
		return err
	}
	h, err := npy.AppendHeader(nil, r.typ(), r.shape)
	if err != nil {
		return err
	}
	if _, err := w.Write(h); err != nil {
		return err
	}
	return r.raw(ctx, w)
}
