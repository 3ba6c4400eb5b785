package cli

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func plotCmd() *cobra.Command {
	var src arrayFlags
	var f plotFlags
	cmd := &cobra.Command{
		Use:   "plot TARGET [--select SEL] [-o FILE]",
		Short: "Show an array as a picture or a line",
		Long: `Draw an array, or the part of it that --select names, in the terminal or into a
file that ends in .png or .svg. SEL is that of "zarrdb read".

A selection of one axis is a line. More axes are a picture of the last two; those
before them are taken at their first index, which the title says. A y axis whose
coordinate ascends goes up, as latitudes do. Arrays of uint8 with 3 or 4 at the
end are pictures in their own colours.

Values are those of --decode-cf, and missing ones are left out; --stored shows the
stored values. The colours of a picture go from the value that 2 in 100 lie below
to the one that 2 in 100 lie above, or as --range says.

What is larger than the terminal or the file is read at every n-th element, and
from few chunks: the title says so. In a pipe, or with NO_COLOR, a picture is made
of characters without escape sequences.`,
		Example: `  zarrdb plot weather.zdb:temp --select "time='2020-02-01'"
  zarrdb plot weather.zdb:temp --select "lat='50',lon='10'"
  zarrdb plot weather.zdb:temp --histogram
  zarrdb plot weather.zdb:temp --range -30,40 --map balance -o temp.png`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(src.out); err != nil {
				return err
			}
			s, a, err := src.array(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			p := plotting{plotFlags: f, a: a, beside: s.Sibling, on: f.screen(cmd, src.out)}
			if p.sel, err = parseSelection(cmd, src.sel, a, s.Sibling); err != nil {
				return err
			}
			fig, err := p.figure(cmd.Context())
			if err != nil {
				return fmt.Errorf("plot %w", err)
			}
			if src.out == "" {
				return sayFigure(cmd, fig, p.on)
			}
			if err := s.Apart(cmd.Context(), src.out); err != nil {
				return fmt.Errorf("plot -o %w", err)
			}
			return writeFile(src.out, func(w io.Writer) error {
				if strings.EqualFold(filepath.Ext(src.out), ".svg") {
					return fig.SVG(w, p.on.columns)
				}
				return fig.PNG(w, p.on.columns)
			})
		},
	}
	src.register(cmd, "FILE.png or FILE.svg")
	f.register(cmd)
	cmd.Flags().BoolVar(&f.histogram, "histogram", false, "count values instead of drawing them")
	cmd.Flags().BoolVar(&f.stored, "stored", false, "show values as they are stored, without their CF attributes")
	return cmd
}

// plotFlags say how figures look.
type plotFlags struct {
	histogram, stored bool
	limits, colours   string
	width             int

	lim *picture.Limits
	m   picture.Map
}

func (f *plotFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.limits, "range", "", "`LO,HI`, the values at both ends of the scale")
	cmd.Flags().StringVar(&f.colours, "map", "", "colours: "+strings.Join(picture.Maps(), ", "))
	cmd.Flags().IntVar(&f.width, "width", 0, "columns of the terminal, or pixels of a file (default that of the terminal, or 800)")
}

// maxPixels bounds the width of a picture.
const maxPixels = 8192

func (f *plotFlags) check(out string) error {
	switch ext := strings.ToLower(filepath.Ext(out)); {
	case out != "" && ext != ".png" && ext != ".svg", strings.Contains(out, "://"):
		return usagef("-o %s: the name of a file must end in .png or .svg", zurl.Redact(out))
	case f.width < 0 || f.width > maxPixels:
		return usagef("--width %d: it is from 1 to %d", f.width, maxPixels)
	}
	var ok bool
	if f.m, ok = picture.MapByName(f.colours); !ok {
		return usagef("--map %s: there are %s", f.colours, strings.Join(picture.Maps(), ", "))
	}
	if f.limits == "" {
		return nil
	}
	lo, hi, _ := strings.Cut(f.limits, ",")
	x, errLo := strconv.ParseFloat(strings.TrimSpace(lo), 64)
	y, errHi := strconv.ParseFloat(strings.TrimSpace(hi), 64)
	if errLo != nil || errHi != nil || !(x < y) {
		return usagef("--range %s: want two numbers such as -5,30, the lower first", f.limits)
	}
	f.lim = &picture.Limits{Lo: x, Hi: y}
	return nil
}

// screen is what a figure is drawn on.
type screen struct {
	columns, lines int // pixels of a file
	colours        picture.Colours
	file           bool
}

// screen is the terminal, the pipe or the file that a command draws on.
func (f *plotFlags) screen(cmd *cobra.Command, out string) screen {
	s := screen{columns: 80, lines: 20}
	if out != "" {
		s = screen{columns: 800, file: true}
	} else if w, ok := cmd.OutOrStdout().(*stdoutWriter); ok {
		if file, ok := w.w.w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			s.colours = terminalColours(os.Environ())
			if columns, lines, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
				s.columns, s.lines = columns, max(lines-4, 6)
			}
		}
	}
	if f.width > 0 {
		s.columns = f.width
		if s.colours == picture.NoColours {
			s.lines = max(f.width/4, 6)
		}
	}
	if s.file {
		s.lines = s.columns
	}
	return s
}

// terminalColours returns what a terminal shows, by the environment (https://no-color.org).
func terminalColours(environ []string) picture.Colours {
	env := map[string]string{}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	switch {
	case env["NO_COLOR"] != "" || env["TERM"] == "dumb":
		return picture.NoColours
	case env["COLORTERM"] == "truecolor" || env["COLORTERM"] == "24bit" || env["WT_SESSION"] != "":
		return picture.TrueColours
	}
	return picture.Colours256
}

// sayFigure prints a figure. Its texts are those of a store.
func sayFigure(cmd *cobra.Command, fig *picture.Figure, s screen) error {
	f := *fig
	f.Title, f.X.Name, f.Y.Name = report.Escape(f.Title, ""), report.Escape(f.X.Name, ""), report.Escape(f.Y.Name, "")
	for _, axis := range []*picture.Scale{&f.X, &f.Y} {
		if label := axis.Label; label != nil {
			axis.Label = func(k int) string { return report.Escape(label(k), "") }
		}
	}
	_, err := io.WriteString(cmd.OutOrStdout(), f.Terminal(s.columns, s.lines, s.colours))
	return err
}

// plotting is an array that is drawn.
type plotting struct {
	plotFlags
	a      *zarr.Array
	dec    *cf.Decoder // nil shows elements as they are stored
	sel    zarr.Selection
	beside cf.Opener
	on     screen
}

// plotChunks is the most chunks that a figure is read from.
const plotChunks = 4096

// request says what is read, and the kind of the figure.
func (p *plotting) request(ctx context.Context) (r picture.Request, kind picture.Kind, err error) {
	axes, at, err := p.a.Axes(p.sel)
	if err != nil {
		return r, 0, err
	}
	long, total := 0, int64(1)
	for _, x := range axes {
		total *= min(x.Len, 2)
		switch {
		case x.Len > 1:
			long++
		case x.Len == 1 && x.Dim >= 0:
			at[x.Dim] = zarr.At(x.Index(0))
		}
	}
	r = picture.Request{Select: p.sel, Width: p.on.columns, Height: 2 * p.on.lines, Chunks: plotChunks}
	switch {
	case p.histogram:
		kind, r.Width, r.Height = picture.Bars, 1024, 1024
		if long < 2 {
			r.Width *= r.Height
		}
	case long < 2:
		kind, r.Width = picture.Series, 4*p.on.columns
	}
	if total == 1 {
		return r, 0, usagef("/%s: one element has no picture; \"zarrdb read\" prints it", p.a.Path())
	}
	if long < 2 {
		r.Select = zarr.Orthogonal(at...)
	}
	if !p.stored {
		if r.Decoder, err = cf.NewDecoderBeside(ctx, p.a, p.beside); err != nil {
			return r, 0, fmt.Errorf("/%s: %w (--stored shows the stored values)", p.a.Path(), err)
		}
		p.dec = r.Decoder
	}
	return r, kind, nil
}

// read reads what is drawn, with the rows in their order.
func (p *plotting) read(ctx context.Context) (*picture.Window, picture.Kind, error) {
	r, kind, err := p.request(ctx)
	if err != nil {
		return nil, 0, err
	}
	w, err := picture.Read(ctx, p.a, r)
	if err != nil || kind != picture.Plane {
		return w, kind, err
	}
	up, err := picture.Up(ctx, p.a, w.Y.Dim, p.beside)
	if up {
		w.TurnUp()
	}
	return w, kind, err
}

func (p *plotting) figure(ctx context.Context) (*picture.Figure, error) {
	w, kind, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	return p.of(ctx, w, kind)
}

// of makes a figure of a window.
func (p *plotting) of(ctx context.Context, w *picture.Window, kind picture.Kind) (*picture.Figure, error) {
	f := &picture.Figure{Kind: kind, Window: w, Map: p.m, Text: p.text(w.Type)}
	low, high := 0.0, 100.0
	if kind == picture.Plane {
		low, high = 2, 98
	}
	all, ok := picture.Percentiles(w.Values, 0, 100)
	if !ok {
		return nil, fmt.Errorf("/%s: every element that was read is missing, nothing can be drawn", p.a.Path())
	}
	switch f.Limits, _ = picture.Percentiles(w.Values, low, high); {
	case p.lim != nil:
		f.Limits = *p.lim
	case f.Map.Diverging:
		f.Limits = f.Limits.Symmetric()
	}
	f.X, f.Y = p.scale(ctx, w.X), p.scale(ctx, w.Y)
	units := textAttribute(p.a, "units")
	if f.Text != nil {
		units = "" // the units are those of the stored counts
	}
	if kind == picture.Bars {
		f.X = picture.Scale{Name: units}
	}
	if f.Title = p.title(ctx, w, units); w.Pixels == nil {
		lo, hi := f.Ends(all)
		f.Title += fmt.Sprintf("  %s to %s", lo, hi)
	}
	return f, ctx.Err()
}

// text prints times and spans of a type; it is nil for numbers.
func (p *plotting) text(t dtype.Type) func(float64) string {
	switch k := t.Kind(); {
	case k != dtype.Datetime && k != dtype.Timedelta:
		return nil
	case p.dec != nil && p.dec.HasText() && k == p.dec.Type().Kind():
		return func(v float64) string {
			text, _ := p.dec.AppendText(nil, binary.LittleEndian.AppendUint64(nil, uint64(int64(v))))
			return strings.TrimSuffix(string(text), "T00:00:00")
		}
	case k == dtype.Datetime:
		return func(v float64) string {
			return strings.TrimSuffix(string(cf.AppendDatetime(nil, t, int64(v))), "T00:00:00")
		}
	}
	return func(v float64) string { return string(cf.AppendTimedelta(nil, t, int64(v))) }
}

// title is the line above a figure: the array, the indices that were taken, and the units.
func (p *plotting) title(ctx context.Context, w *picture.Window, units string) string {
	title := "/" + p.a.Path()
	for d, i := range w.At {
		if d == w.Y.Dim || d == w.X.Dim || w.Pixels != nil && d == len(w.At)-1 {
			continue
		}
		line := picture.Line{Dim: d, Start: i, Len: 1}
		title += "  " + p.scale(ctx, line).Ends(1)
	}
	if units != "" {
		title += "  " + units
	}
	for _, l := range []picture.Line{w.Y, w.X} {
		if l.Skip > 1 {
			title += fmt.Sprintf("  1 of %d along %s", l.Skip, dimensionName(p.a, l.Dim))
		}
	}
	return title
}

// scale names the places along an axis by labels, or by indices.
func (p *plotting) scale(ctx context.Context, l picture.Line) picture.Scale {
	if l.Dim < 0 {
		return picture.Scale{}
	}
	s := picture.Scale{
		Name: dimensionName(p.a, l.Dim), Least: 1,
		Label: func(k int) string { return strconv.FormatInt(l.Index(k), 10) },
		Value: func(k int) float64 { return float64(l.Index(k)) },
	}
	if l.Step == 0 { // a list of indices may have any order
		s.Value = nil
	}
	if labels := picture.Labels(ctx, p.a, l.Dim, p.beside); labels != nil && s.Name != arrayName(p.a) {
		s.Label = func(k int) string { return strings.TrimSuffix(labels.Text(l.Index(k)), "T00:00:00") }
		number := func(k int) (float64, error) { return strconv.ParseFloat(labels.Text(l.Index(k)), 64) }
		if _, err := number(0); err != nil || labels.Order() == 0 {
			s.Value = nil
		} else if s.Value != nil {
			s.Least, s.Value = 0, func(k int) float64 { v, _ := number(k); return v }
		}
	}
	return s
}
