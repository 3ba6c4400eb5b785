package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// diffFlags select the printed parts of a difference, and their form.
type diffFlags struct {
	values, json, plot bool
}

// maxParts bounds the differing parts of an array in text output.
const maxParts = 20

func (f diffFlags) print(cmd *cobra.Command, db *engine.DB, from, to txn.CommitID, path string) error {
	if f.json {
		return printJSONLines(cmd, report.Diff(cmd.Context(), db, from, to, path, f.values))
	}
	changes, err := db.NodeChanges(cmd.Context(), from, to, path)
	if err != nil {
		return err
	}
	for _, c := range changes {
		sayChange(cmd, c)
		if f.values {
			err = sayValues(cmd, db, from, to, c)
		}
		if err == nil && f.plot {
			err = plotChange(cmd, db, from, to, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sayChange prints a node that differs, and the fields that do.
func sayChange(cmd *cobra.Command, c engine.NodeChange) {
	fields := c.Fields
	c.Fields = nil
	say(cmd, "%s", c.String())
	for _, f := range fields {
		say(cmd, "    %s", f)
	}
}

// sayValues prints where the values of an array differ: the first parts, and a sum.
func sayValues(cmd *cobra.Command, db *engine.DB, from, to txn.CommitID, c engine.NodeChange) error {
	var sum engine.ValueChange
	parts, unit := 0, ""
	for v, err := range db.ValueChanges(cmd.Context(), from, to, c) {
		switch {
		case err != nil:
			return err
		case v.Incomparable != "":
			say(cmd, "    values: not compared, the %s is another", v.Incomparable)
			continue
		}
		if parts == 0 && v.Numbers > 0 {
			if unit, err = unitOf(cmd.Context(), db, to, c.Path); err != nil {
				return err
			}
		}
		sum.Add(v)
		if parts++; parts <= maxParts {
			say(cmd, "    %s", valuesText(v, unit))
		}
	}
	if parts > maxParts {
		say(cmd, "    … %d more", parts-maxParts)
	}
	if parts > 1 {
		say(cmd, "    all %s", valuesText(sum, unit))
	}
	return nil
}

// plotChange draws the difference of an array between two versions, newer minus older: the
// plane of the first elements that differ.
func plotChange(cmd *cobra.Command, db *engine.DB, from, to txn.CommitID, c engine.NodeChange) error {
	ctx := cmd.Context()
	f := plotFlags{colours: "balance"}
	if err := f.check(""); err != nil {
		return err
	}
	for v, err := range db.ValueChanges(ctx, from, to, c) {
		if err != nil || v.Incomparable != "" {
			return err
		}
		return db.ChangedParts(ctx, from, to, c, func(older, newer *zarr.Array, parts iter.Seq2[zarr.Chunk, error]) error {
			return f.change(cmd, db, to, v.Start, picture.Pair{Older: older, Newer: newer, Parts: parts})
		})
	}
	return nil
}

// change draws the plane of a pair that has an element, whose index is at, where both versions
// have elements.
func (f *plotFlags) change(cmd *cobra.Command, db *engine.DB, to txn.CommitID, at []int64, pair picture.Pair) error {
	ctx := cmd.Context()
	if err := picture.Numeric(pair.Newer.Type()); err != nil {
		say(cmd, "    not drawn: %s", err)
		return nil
	}
	s, err := db.Snapshot(ctx, to)
	if err != nil {
		return err
	}
	defer s.Close()
	index := make([]zarr.Index, len(at)) // all of the last two dimensions
	for d, i := range at {
		if index[d] = zarr.At(i); d >= len(at)-2 {
			index[d] = zarr.Slice(0, min(pair.Older.Shape()[d], pair.Newer.Shape()[d]), 1)
		}
	}
	on, beside := f.screen(cmd, ""), engine.Beside(s, pair.Newer.Path())
	p, err := f.plot(ctx, pair.Newer, zarr.Sel(index...), beside, on)
	if err != nil {
		return err
	}
	kind, err := p.Prepare()
	if errors.Is(err, picture.ErrOneElement) {
		say(cmd, "    not drawn: %s; --values says by how much it differs", picture.ErrOneElement)
		return nil
	}
	if err != nil {
		return err
	}
	if pair.Was, err = cf.NewDecoderBeside(ctx, pair.Older, beside); err != nil {
		return err
	}
	p.Request.Width *= 1 + 3*int(kind) // braille has more dots than columns
	w, _, err := pair.Read(ctx, p.Request)
	if err != nil {
		return err
	}
	if all, ok := picture.Percentiles(w.Values, 0, 100); !ok || all == (picture.Limits{}) && !slices.ContainsFunc(w.Values, func(v float64) bool { return math.IsInf(v, 0) }) {
		say(cmd, "    not drawn: the numbers that were read are equal; --values lists what differs")
		return nil
	}
	if w.Type.Kind() == dtype.Datetime { // the difference of times is a span
		unit, scale := w.Type.Unit()
		w.Type, _ = dtype.NewTimedelta(unit, scale)
	}
	rows, cols := w.Y.Skip, w.X.Skip
	w.Y.Skip, w.X.Skip = 1, 1 // the title names them as what shares a place
	fig, err := p.Of(ctx, w, kind)
	if err != nil {
		return err
	}
	fig.Title += "  newer minus older"
	if rows*cols > 1 {
		fig.Title += fmt.Sprintf(", the largest of each %d × %d", rows, cols)
	}
	if !slices.Equal(pair.Older.Shape(), pair.Newer.Shape()) {
		fig.Title += fmt.Sprintf(", of shape %v which was %v", pair.Newer.Shape(), pair.Older.Shape())
	}
	return sayFigure(cmd, fig, on)
}

// unitOf names the unit of an array of times.
func unitOf(ctx context.Context, db *engine.DB, at txn.CommitID, path string) (string, error) {
	s, err := db.Snapshot(ctx, at)
	if err != nil {
		return "", err
	}
	defer s.Close()
	a, err := s.Array(ctx, path)
	if err != nil {
		return "", err
	}
	if k := a.Type().Kind(); k != dtype.Datetime && k != dtype.Timedelta {
		return "", nil
	}
	unit, scale := a.Type().Unit()
	if scale != 1 {
		unit = fmt.Sprintf("× %d %s", scale, unit)
	}
	return " " + unit, nil
}

func valuesText(v engine.ValueChange, unit string) string {
	verb := "differ"
	if v.Count == 1 {
		verb = "differs"
	}
	s := fmt.Sprintf("[%s] %s %s", boxText(v.Start, v.Shape), count(v.Count, "value"), verb)
	if v.Numbers == 0 {
		return s
	}
	num := func(f float64) string {
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 { // all digits of a whole number
			return strconv.FormatFloat(f+0, 'f', 0, 64) + unit
		}
		return strconv.FormatFloat(f, 'g', 6, 64) + unit
	}
	s += fmt.Sprintf(": min %s, max %s, mean %s", num(v.Min), num(v.Max), num(v.Mean))
	if v.Numbers < v.Count {
		s += fmt.Sprintf(" (of %d)", v.Numbers)
	}
	return s
}
