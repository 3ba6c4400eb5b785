package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
)

// peersJSON holds what other programs reached on the same work.
//
//go:embed peers.json
var peersJSON []byte

// peer is one figure of another program.
type peer struct {
	Workload, Variant, Metric, Unit, System string
	Value                                   float64
	Better                                  string // "more" or "less"
}

// throughZarr ends the name of a figure that zarr-python reached with our store and codecs;
// the peers are those of the figure without it.
const throughZarr = ", through zarr-python"

// best finds the best peer on the same work.
func best(peers []peer, r result) (b peer, ok bool) {
	r.Metric = strings.TrimSuffix(r.Metric, throughZarr)
	for _, p := range peers {
		if p.Workload != r.Workload || p.Variant != r.Variant || p.Metric != r.Metric {
			continue
		}
		if !ok || (p.Better == "more") == (p.Value > b.Value) {
			b, ok = p, true
		}
	}
	return b, ok
}

// report makes the table: our figures, the best peer's, and how many times
// better ours is.
func report(results []result, live []peer) ([]byte, error) {
	var recorded struct {
		About   string
		Figures []peer
	}
	if err := json.Unmarshal(peersJSON, &recorded); err != nil {
		return nil, fmt.Errorf("peers.json: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Figures\n\nMade by `make bench` on %s, %s/%s, %d processors (%s).\n\n", time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuid.CPU.BrandName)
	fmt.Fprintf(&b, "Writes are durable when they are counted. Reads go into memory that was touched before; \"hot\" is from the page cache, with the\ndatabase's own chunk cache off. \"times\" is how many times better than the best peer, whose figures were taken on another day:\n%s\n", recorded.About)
	if len(live) > 0 {
		fmt.Fprintf(&b, "Those of \"references\", \"netcdf\" and \"formats\", and of arrays of up to 10000 chunks and 1000 commits, were taken in this run too, with what requirements.txt names.\n")
	}
	figures := append(slices.Clone(live), recorded.Figures...)
	var workloads []string
	for _, r := range results {
		if !slices.Contains(workloads, r.Workload) {
			workloads = append(workloads, r.Workload)
		}
	}
	for _, w := range workloads {
		fmt.Fprintf(&b, "\n## %s\n\n| variant | what | zarrdb | best peer | times |\n|---|---|---:|---:|---:|\n", w)
		for _, r := range results {
			if r.Workload != w {
				continue
			}
			other, times := "", ""
			if p, ok := best(figures, r); ok {
				ratio := r.Value / p.Value
				if p.Better == "less" {
					ratio = 1 / ratio
				}
				other, times = fmt.Sprintf("%s %s (%s)", figure(p.Value), p.Unit, p.System), fmt.Sprintf("%.2f", ratio)
			}
			fmt.Fprintf(&b, "| %s | %s | %s %s | %s | %s |\n", r.Variant, r.Metric, figure(r.Value), r.Unit, other, times)
		}
	}
	besides(&b, results, live)
	return []byte(b.String()), nil
}

// besides makes the table of all that others reached in this run.
func besides(b *strings.Builder, results []result, live []peer) {
	if len(live) == 0 {
		return
	}
	type row struct{ workload, variant, metric, unit string }
	var rows []row
	var systems []string
	theirs := map[row]map[string]float64{}
	for _, p := range live {
		r := row{p.Workload, p.Variant, p.Metric, p.Unit}
		if theirs[r] == nil {
			theirs[r] = map[string]float64{}
			rows = append(rows, r)
		}
		theirs[r][p.System] = p.Value
		if !slices.Contains(systems, p.System) {
			systems = append(systems, p.System)
		}
	}
	fmt.Fprintf(b, "\n## others in the same run\n\n| variant | what | zarrdb | %s |\n|---|---|---:|%s\n", strings.Join(systems, " | "), strings.Repeat("---:|", len(systems)))
	for _, r := range rows {
		what, ours := r.metric+" ("+r.unit+")", ""
		for _, o := range results {
			if o.Workload == r.workload && o.Variant == r.variant && o.Metric == r.metric {
				what, ours = r.metric, figure(o.Value)+" "+o.Unit
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s |", r.variant, what, ours)
		for _, s := range systems {
			if v, ok := theirs[r][s]; ok {
				fmt.Fprintf(b, " %s", figure(v))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
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
