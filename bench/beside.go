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

// peersScript measures other programs, in Python.
//
//go:embed peers.py
var peersScript string

// versionsScript measures others that have versions.
//
//go:embed versions.py
var versionsScript string

// formatsScript measures others on foreign formats.
//
//go:embed formats.py
var formatsScript string

// beside runs a part of peers.py on what a workload made, if there is a Python
// to run it. A program that fails is passed over: its figures are missing.
func (b *bench) beside(ctx context.Context, part string, args map[string]any) error {
	return b.others(ctx, peersScript, part, args)
}

// versionsOfOthers is beside with versions.py.
func (b *bench) versionsOfOthers(ctx context.Context, part string, args map[string]any) error {
	return b.others(ctx, versionsScript, part, args)
}

// formatsOfOthers is beside with formats.py.
func (b *bench) formatsOfOthers(ctx context.Context, part string, args map[string]any) error {
	return b.others(ctx, formatsScript, part, args)
}

func (b *bench) others(ctx context.Context, script, part string, args map[string]any) error {
	if b.python == "" {
		return nil
	}
	return b.script(ctx, b.python, script, part, args)
}

// script runs a part of a script, which prints figures: ours and those of others.
func (b *bench) script(ctx context.Context, python, script, part string, args map[string]any) error {
	line := []string{"-c", script, part}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		line = append(line, fmt.Sprintf("%s=%v", name, args[name]))
	}
	cmd := exec.CommandContext(ctx, python, line...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var p peer
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			continue // something else that a library prints
		}
		switch p.System {
		case direct:
			b.results = append(b.results, result{p.Workload, p.Variant, p.Metric, p.Value, p.Unit})
		case adapted:
			b.results = append(b.results, result{p.Workload, p.Variant, p.Metric + throughZarr, p.Value, p.Unit})
		default:
			b.live = append(b.live, p)
		}
		fmt.Printf("%-10s %-18s %-28s %12.4g %s (%s)\n", p.Workload, p.Variant, p.Metric, p.Value, p.Unit, p.System)
	}
	if err := cmd.Wait(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", part, err)
	}
	return ctx.Err()
}
