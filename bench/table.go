package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
)

// measure is a row of the table: figures of programs for the same work in the same run.
type measure struct {
	Workload, Variant, Metric, Unit string
	Samples                         map[string][]float64 // by the name of the program
	Load                            float64              // the most foreign load beside a sample, in cores
}

// more reports whether a larger figure is better.
func (m *measure) more() bool { return strings.HasSuffix(m.Unit, "/s") || m.Unit == "%" }

// sample adds a figure of one program.
func (b *bench) sample(workload, variant, metric, unit, system string, value float64) *measure {
	i := slices.IndexFunc(b.part.Rows, func(m *measure) bool {
		return m.Workload == workload && m.Variant == variant && m.Metric == metric && m.Unit == unit
	})
	if i < 0 {
		i = len(b.part.Rows)
		b.part.Rows = append(b.part.Rows, &measure{Workload: workload, Variant: variant, Metric: metric, Unit: unit, Samples: map[string][]float64{}})
	}
	m := b.part.Rows[i]
	m.Samples[system] = append(m.Samples[system], value)
	return m
}

// best is the peer whose median is best.
func (m *measure) best() (name string, value float64) {
	for system, s := range m.Samples {
		if slices.Contains(doors, system) {
			continue
		}
		if v := median(s); name == "" || m.more() == (v > value) || v == value && system < name {
			name, value = system, v
		}
	}
	return name, value
}

// times is how many times better one of our doors is than the best peer; 0 if one of them is
// missing.
func (m *measure) times(door string) float64 {
	name, theirs := m.best()
	ours := m.Samples[door]
	switch {
	case name == "" || len(ours) == 0:
		return 0
	case m.more():
		return median(ours) / theirs
	}
	return theirs / median(ours)
}

// report makes the page: a picture, the table of work that other programs do too, and the
// figures of zarrdb alone.
func (b *bench) report(drawn string) []byte {
	rows := b.part.Rows
	var w strings.Builder
	fmt.Fprintf(&w, "# Figures\n\nMade by `make bench` on %s: %s/%s, %d processors (%s).\n\n", time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuid.CPU.BrandName)
	fmt.Fprintf(&w, `All programs of a row ran alternately in one run, on the same values, which each read back right: whole arrays of %d MiB. A figure with a spread is the
median of %d rounds, others are single runs; the figure in brackets is how many times better it is than the best peer, **bold** where the peer is better.
An empty cell was not measured. Writes count until they are on the disk. "Fresh memory" is what each program's users get from it, "touched" is memory that
was written before. No program keeps decoded chunks, but for the rows called cached. "Load" is the most that other work of the
machine took beside a sample, in processors; the kernel's writing back is other work.

![how many times better than the best peer](%s)

| work | how | zarrdb | %s | best peer | load |
|---|---|---:|---:|---:|---:|---:|---:|
`, bytesOf(b.planes)>>20, b.rounds, drawn, strings.Join(doors[1:], " | "))
	for _, m := range rows {
		name, value := m.best()
		if name == "" {
			continue
		}
		fmt.Fprintf(&w, "| %s | %s |", m.work(), m.Variant)
		for _, door := range doors {
			fmt.Fprintf(&w, " %s |", m.cell(door))
		}
		fmt.Fprintf(&w, " %s %s (%s) | %s |\n", m.figure(name, value), m.Unit, name, loadOf(m.Load))
	}
	w.WriteString("\n## Measured of zarrdb alone\n\nIn brackets: the time of a second process beside that of the process that has the database open.\n\n")
	w.WriteString("| work | how | zarrdb | second process |\n|---|---|---:|---:|\n")
	for _, m := range rows {
		if name, _ := m.best(); name != "" {
			continue
		}
		second := ""
		if s := m.Samples[secondProcess]; len(s) > 0 {
			second = fmt.Sprintf("%s (%.2f)", m.figure(secondProcess, median(s)), median(s)/median(m.Samples[inProcess]))
		}
		ours := inProcess
		if len(m.Samples[ours]) == 0 {
			ours = inPython
		}
		fmt.Fprintf(&w, "| %s | %s | %s %s | %s |\n", m.work(), m.Variant, m.figure(ours, median(m.Samples[ours])), m.Unit, second)
	}
	return []byte(w.String())
}

func (m *measure) work() string {
	if m.Workload == m.Metric || m.Workload == "" {
		return m.Metric
	}
	return m.Workload + ": " + m.Metric
}

func loadOf(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", v)
}

// cell is the figure of one of our doors, with its ratio.
func (m *measure) cell(door string) string {
	s := m.Samples[door]
	if len(s) == 0 {
		return ""
	}
	text := m.figure(door, median(s))
	if door == inProcess {
		text += " " + m.Unit
	}
	t := m.times(door)
	text += fmt.Sprintf(" (%.2f)", t)
	if t < 0.995 {
		text = "**" + text + "**"
	}
	return text
}

// figure is a median with the spread of its samples in percent.
func (m *measure) figure(system string, value float64) string {
	s := m.Samples[system]
	if len(s) < 2 || value == 0 {
		return figure(value)
	}
	return fmt.Sprintf("%s ±%.0f%%", figure(value), 50*(slices.Max(s)-slices.Min(s))/value)
}

// median is the middle of samples, which stay in their order.
func median(s []float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	s = slices.Sorted(slices.Values(s))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// figure prints three significant digits without an exponent.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// Sizes of the picture, in pixels.
const (
	barHeight, barGap  = 11, 3
	barLeft, barWidth  = 330, 560
	leastTimes, mostTi = 0.25, 64.0
)

// picture draws a bar for each row that a peer does too: from 1 to the right where we are
// better, to the left where the peer is; the scale is logarithmic.
func picture(rows []*measure) []byte {
	var b strings.Builder
	x := func(t float64) float64 {
		t = math.Log(min(max(t, leastTimes), mostTi)/leastTimes) / math.Log(mostTi/leastTimes)
		return barLeft + barWidth*t
	}
	y := 30
	for _, m := range rows {
		t := m.times(inProcess)
		if t == 0 {
			continue
		}
		colour, from, to := "#2a7f62", x(1), x(t)
		if t < 0.995 {
			colour, from, to = "#c0532b", x(t), x(1)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s, %s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
			barLeft-8, y+barHeight-2, escape.Replace(m.work()), escape.Replace(m.Variant), from, y, max(1, to-from), barHeight, colour, to+4, y+barHeight-2, figure(t))
		y += barHeight + barGap
	}
	var all strings.Builder
	fmt.Fprintf(&all, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="10" fill="#222"><rect width="100%%" height="100%%" fill="#fff"/>`+"\n", barLeft+barWidth+50, y+10)
	for _, t := range []float64{leastTimes, 0.5, 1, 2, 4, 8, 16, 32, mostTi} {
		fmt.Fprintf(&all, `<line x1="%.1f" x2="%.1f" y1="24" y2="%d" stroke="#bbb"/><text x="%.1f" y="18" text-anchor="middle">%g×</text>`+"\n", x(t), x(t), y, x(t), t)
	}
	return []byte(all.String() + b.String() + "</svg>\n")
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
