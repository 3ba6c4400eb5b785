package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
)

// Scripts in Python that measure other programs: readers of references and NetCDF
// files, stores with versions, and readers of foreign formats.
var (
	//go:embed peers.py
	peersScript string
	//go:embed versions.py
	versionsScript string
	//go:embed formats.py
	formatsScript string
)

// figureOf is a line that a script prints.
type figureOf struct {
	Workload, Variant, Metric, Unit, System string
	Value                                   float64
}

// beside runs a part of a script on the files of a workload, if there is a Python to run it. A
// program that fails is passed over: its figures are missing.
func (b *bench) beside(ctx context.Context, script, part string, args map[string]any) {
	if b.python != "" {
		b.script(ctx, b.python, script, part, args)
	}
}

// script runs a part of a script, which prints figures: ours and other programs'.
func (b *bench) script(ctx context.Context, python, script, part string, args map[string]any) {
	line := []string{"-c", script, part}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		line = append(line, fmt.Sprintf("%s=%v", name, args[name]))
	}
	cmd := exec.CommandContext(ctx, python, line...)
	cmd.Stderr = os.Stderr
	out := must(cmd.StdoutPipe())
	check(cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var p figureOf
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			continue // something else that a library prints
		}
		b.sample(p.Workload, p.Variant, p.Metric, p.Unit, p.System, p.Value)
		fmt.Printf("%-10s %-18s %-28s %12.4g %s (%s)\n", p.Workload, p.Variant, p.Metric, p.Value, p.Unit, p.System)
	}
	if err := cmd.Wait(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", part, err)
	}
	check(ctx.Err())
}
