package main

import (
	"context"
	"strings"
	"testing"
)

// Every workload runs on small sizes and what it reads back is what was
// written; the table names the best peer.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some hundred MiB")
	}
	b := &bench{dir: t.TempDir(), quick: true}
	for _, w := range workloads {
		if w.name == "limits" {
			continue
		}
		if err := w.run(context.Background(), b); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
	}
	table, err := report(b.results)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## write", "## read", "| blosc-lz4 | hot |", "## versions", "## lookup"} {
		if !strings.Contains(string(table), want) {
			t.Errorf("the table has no %q", want)
		}
	}
}

func TestBestPeer(t *testing.T) {
	peers := []peer{
		{"w", "v", "rate", "GB/s", "slow", 1, "more"}, {"w", "v", "rate", "GB/s", "fast", 2, "more"},
		{"w", "v", "time", "us", "slow", 9, "less"}, {"w", "v", "time", "us", "fast", 3, "less"},
	}
	for _, metric := range []string{"rate", "time"} {
		if p, ok := best(peers, result{"w", "v", metric, 1, ""}); !ok || p.System != "fast" {
			t.Errorf("%s: %+v", metric, p)
		}
	}
	if _, ok := best(peers, result{"w", "other", "rate", 1, ""}); ok {
		t.Error("found a peer for other work")
	}
}
