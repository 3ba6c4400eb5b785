package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
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
coordinate ascends goes up, as latitudes do, depths and pressures go down, and
rows have the distances of their labels. Arrays of uint8 with 3 or 4 colours at the
end, by the name of the axis, are pictures in their own colours.

Values are those of --decode-cf, and missing ones are left out; --stored shows the
stored values. The colours of a picture go from the value that 2 in 100 lie below
to the one that 2 in 100 lie above, or as --range says.

A line has the least and the greatest value where elements share a column. A picture
that is larger than the terminal or the file is read at every n-th element, and from
few chunks: the title says so. --animate steps along a further axis, with the same
colours in all frames, those of a sample of the whole selection. In a pipe, or with NO_COLOR, a picture is made
of characters without escape sequences.`,
		Example: `  zarrdb plot weather.zdb:temp --select "time='2020-02-01'"
  zarrdb plot weather.zdb:temp --select "lat='50',lon='10'"
  zarrdb plot weather.zdb:temp --histogram
  zarrdb plot weather.zdb:temp --range -30,40 --map balance -o temp.png
  zarrdb plot weather.zdb:temp --animate time --centre 0 --coast -o temp.gif`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(src.out); err != nil {
				return err
			}
			// No cache of chunks, each of which is read once, and little garbage.
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(min(plotMemory, debug.SetMemoryLimit(-1))))
			s, a, err := src.array(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			sel, err := parseSelection(cmd, src.sel, a, s.Sibling)
			if err != nil {
				return err
			}
			on := f.screen(cmd, src.out)
			p, err := f.plot(cmd.Context(), a, sel, s.Sibling, on)
			if err == nil && a.Path() == "" { // the target is the array
				p.Name = path.Base(zurl.Redact(strings.TrimRight(filepath.ToSlash(args[0]), "/")))
			}
			if err == nil && f.animate != "" {
				return f.film(cmd, s.Apart, p, src.out, on)
			}
			var fig *picture.Figure
			if err == nil {
				fig, err = p.Figure(cmd.Context())
			}
			switch {
			case errors.Is(err, picture.ErrOneElement):
				return usagef("%s; \"zarrdb read\" prints it", err)
			case err != nil:
				return fmt.Errorf("plot %w", err)
			case src.out == "":
				return sayFigure(cmd, fig, on)
			}
			if err := s.Apart(cmd.Context(), src.out); err != nil {
				return fmt.Errorf("plot -o %w", err)
			}
			return writeFile(src.out, func(w io.Writer) error {
				if strings.EqualFold(filepath.Ext(src.out), ".svg") {
					return fig.SVG(w, on.columns)
				}
				return fig.PNG(w, on.columns)
			})
		},
	}
	src.register(cmd, "FILE.png, FILE.svg or, with --animate, FILE.gif")
	f.register(cmd)
	cmd.Flags().BoolVar(&f.histogram, "histogram", false, "count values instead of drawing them")
	cmd.Flags().StringVar(&f.animate, "animate", "", fmt.Sprintf("draw each element along the dimension `DIM` into a FILE.gif, at most %d", picture.MostFrames))
	cmd.Flags().StringVar(&f.part, "part", "", "`PART` of elements: real or imag of complex numbers, a field of structs")
	cmd.Flags().BoolVar(&f.stored, "stored", false, "show values as they are stored, without their CF attributes")
	return cmd
}

// plotFlags say how figures look.
type plotFlags struct {
	histogram, stored bool
	limits, colours   string
	part, animate     string
	width             int
	log, coast        bool
	centre            string

	lim *picture.Limits
	mid *float64 // of centre
	m   picture.Map
}

func (f *plotFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.limits, "range", "", "`LO,HI`, the values at both ends of the scale")
	cmd.Flags().StringVar(&f.colours, "map", "", "colours: "+strings.Join(picture.Maps(), ", ")+"; NAME_r turns them around")
	cmd.Flags().BoolVar(&f.log, "log", false, "equal ratios at equal distances of the scale of colours")
	cmd.Flags().BoolVar(&f.coast, "coast", false, "draw coasts over latitudes and longitudes, in a file")
	cmd.Flags().StringVar(&f.centre, "centre", "", "`LON`, the longitude in the middle of a map of the globe, such as 0 or 180")
	cmd.Flags().IntVar(&f.width, "width", 0, "columns of the terminal, or pixels of a file (default that of the terminal, or 800)")
}

// plotMemory is what a picture takes, unless one chunk that is decoded whole takes more.
const plotMemory = 160 << 20

// maxPixels bounds the width of a picture.
const maxPixels = 8192

func (f *plotFlags) check(out string) error {
	switch ext := strings.ToLower(filepath.Ext(out)); {
	case f.animate != "" && (ext != ".gif" || f.histogram):
		return usagef("--animate %s: it draws pictures into a file, -o FILE.gif", f.animate)
	case f.animate == "" && out != "" && ext != ".png" && ext != ".svg", strings.Contains(out, "://"):
		return usagef("-o %s: the name of a file must end in .png or .svg", zurl.Redact(out))
	case f.width < 0 || f.width > maxPixels:
		return usagef("--width %d: it is from 1 to %d", f.width, maxPixels)
	}
	var ok bool
	if f.m, ok = picture.MapByName(f.colours); !ok {
		return usagef("--map %s: there are %s", f.colours, strings.Join(picture.Maps(), ", "))
	}
	if f.centre != "" {
		v, err := strconv.ParseFloat(f.centre, 64)
		if f.mid = &v; err != nil || v-v != 0 {
			return usagef("--centre %s: want a longitude such as 0, 180 or -100", f.centre)
		}
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
	if f.lim = (&picture.Limits{Lo: x, Hi: y, Log: f.log}); f.log && x <= 0 {
		return usagef("--range %s: with --log both numbers are more than 0", f.limits)
	}
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
	f := fig.Escaped(func(text string) string { return report.Escape(text, "") })
	_, err := io.WriteString(cmd.OutOrStdout(), f.Terminal(s.columns, s.lines, s.colours))
	return err
}

// film writes an animation; apart refuses files of the array.
func (f *plotFlags) film(cmd *cobra.Command, apart func(context.Context, string) error, p *picture.Plot, out string, on screen) error {
	dim := -1
	for d := range p.Array.Shape() {
		if picture.DimensionName(p.Array, d) == f.animate {
			dim = d
		}
	}
	if dim < 0 {
		return usagef("--animate %s: /%s has no dimension of that name", f.animate, p.Array.Path())
	}
	if err := apart(cmd.Context(), out); err != nil {
		return fmt.Errorf("plot -o %w", err)
	}
	return writeFile(out, func(w io.Writer) error {
		if err := p.Animate(cmd.Context(), w, dim, on.columns, nil); err != nil {
			return fmt.Errorf("plot %w", err)
		}
		return nil
	})
}

// plotChunks is the most chunks that a figure is read from.
const plotChunks = 4096

// plot is what is drawn of an array, with the values that the decoder of it gives, or as they
// are stored.
func (f *plotFlags) plot(ctx context.Context, a *zarr.Array, sel zarr.Selection, beside cf.Opener, on screen) (*picture.Plot, error) {
	p := &picture.Plot{Array: a, Beside: beside, Histogram: f.histogram, Limits: f.lim, Map: f.m, Coast: f.coast, Centre: f.mid, LongName: on.file,
		Request: picture.Request{Select: sel, Width: on.columns, Height: 2 * on.lines, Chunks: plotChunks, Part: f.part, Log: f.log}}
	if f.stored {
		return p, nil
	}
	var err error
	if p.Decoder, err = cf.NewDecoderBeside(ctx, a, beside); err != nil {
		err = fmt.Errorf("/%s: %w (--stored shows the stored values)", a.Path(), err)
	}
	return p, err
}
