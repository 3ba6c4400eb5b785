package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// Command lines of reports are made of checked parts only.
func TestReport(t *testing.T) {
	ctx := context.Background()
	db, err := engine.Open(context.Background(), "db", &engine.Options{FS: vfs.NewMem(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	head, err := db.Head("main")
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	code, print := 0, "{}\n"
	table := New(Options{Run: func(ctx context.Context, c *Command) int {
		args = c.Args
		if len(c.Held) != 1 {
			t.Errorf("%d databases are held", len(c.Held))
		}
		fmt.Fprintf(c.Stderr, "a note\nzarrdb: open %s: it failed\n", db.Dir())
		for ctx.Err() == nil {
			if _, err := io.WriteString(c.Stdout, print); err != nil || len(print) < 1000 {
				break
			}
		}
		return code
	}})
	if err := table.AddDatabase("w", db); err != nil {
		t.Fatal(err)
	}
	at := db.Dir() + "@" + head.String()
	for _, c := range []struct {
		r    Report
		want string
	}{
		{Report{Kind: "log"}, "log --json -n 100 -- " + at},
		{Report{Kind: "log", Rev: "main", Path: "/a/b/", Number: 7}, "log --json -n 7 -- " + at + ":a/b"},
		{Report{Kind: "diff", Rev: head.String(), To: "main", Values: true}, "diff --json --values -- " + at + " " + head.String()},
		{Report{Kind: "info", Path: "--help"}, "info --json -- " + at + ":--help"},
		{Report{Kind: "stats"}, "stats --json -- " + at},
	} {
		args = nil
		if _, _, err := table.Report(ctx, "w", c.r); err != nil || strings.Join(args, " ") != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.r, args, err, c.want)
		}
	}
	for _, c := range []struct {
		name string
		r    Report
		want error
	}{
		{"w", Report{Kind: "gc"}, ErrReport},
		{"w", Report{Kind: "stats", Path: "a"}, ErrReport},
		{"w", Report{Kind: "info", Path: "a|zip:"}, ErrReport},
		{"w", Report{Kind: "info", Rev: "main:a"}, txn.ErrNoRef},
		{"w", Report{Kind: "diff", To: "--values"}, txn.ErrNoRef},
		{"x", Report{Kind: "log"}, ErrNoDatabase},
	} {
		args = nil
		if _, _, err := table.Report(ctx, c.name, c.r); !errors.Is(err, c.want) || args != nil {
			t.Errorf("%+v: %v, ran %q; want %v", c.r, err, args, c.want)
		}
	}
	code = 4
	var failed *ReportError
	if _, _, err := table.Report(ctx, "w", Report{Kind: "log"}); !errors.Is(err, kv.ErrNotFound) || !errors.As(err, &failed) || failed.Message != "open w: it failed" {
		t.Errorf("a command that failed: %v", err)
	}
	print = strings.Repeat("x", 1<<20)
	if _, _, err := table.Report(ctx, "w", Report{Kind: "log"}); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("an answer without end: %v", err)
	}
}
