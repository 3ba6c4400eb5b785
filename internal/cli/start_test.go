package cli

import (
	"context"
	"flag"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var updateStart = flag.Bool("update-start", false, "write the output of the commands into docs/start.md and README.md")

// masks are the parts of an output that differ from run to run.
var masks = []struct {
	part *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:8080"},
	{regexp.MustCompile(`:8080/[\w-]{20,}/`), ":8080/SECRET/"},
}

// ids are what the page shows for commits, in the order in which the ids appear.
var ids = []string{"7ba3a3923b", "5e452598ce", "f9836a3e69"}

func mask(s string) string {
	seen := map[string]string{}
	s = regexp.MustCompile(`\b[0-9a-f]{10}\b`).ReplaceAllStringFunc(s, func(id string) string {
		if _, ok := seen[id]; !ok && len(seen) < len(ids) {
			seen[id] = ids[len(seen)]
		}
		return seen[id]
	})
	for _, m := range masks {
		s = m.part.ReplaceAllString(s, m.by)
	}
	return s
}

// Each command of docs/start.md and of the README prints what the page shows.
func TestStart(t *testing.T) {
	for name, least := range map[string]int{"docs/start.md": 10, "README.md": 6} {
		t.Run(name, func(t *testing.T) { testPage(t, name, least) })
	}
}

func testPage(t *testing.T, name string, least int) {
	page := must.Get(filepath.Abs("../../" + name))(t)
	text := must.Get(os.ReadFile(page))(t)
	t.Chdir(t.TempDir())
	if got := typed(t, `zarrdb demo --dir tour`); !strings.Contains(got, "byte for byte") {
		t.Fatal(got)
	}
	commands := 0
	got := regexp.MustCompile("(?s)```console\n(.*?)```").ReplaceAllStringFunc(string(text), func(block string) string {
		out := "```console\n"
		for line := range strings.Lines(block) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			commands++
			out += line + typed(t, strings.TrimSpace(command))
		}
		return out + "```"
	})
	got = mask(got)
	if *updateStart {
		must.Do(t, os.WriteFile(page, []byte(got), 0o644))
	} else if got != mask(string(text)) {
		t.Errorf("%s is stale (go test ./internal/cli -run TestStart -update-start writes it); now it would be:\n%s", name, got)
	}
	if commands < least {
		t.Errorf("%d commands", commands)
	}
}

// The README's links lead to files, its Go is an example that is run, and its figures are measured.
func TestReadme(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b := must.Get(os.ReadFile(filepath.Join("../..", name)))(t)
		return string(b)
	}
	unindented := func(s string) string { return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(s, "") }
	readme, results := read("README.md"), read("bench/RESULTS.md")
	for _, page := range []string{"README.md", "docs/start.md", "docs/commands.md", "docs/packages.md", "docs/serving.md"} {
		for _, m := range regexp.MustCompile(`\]\(([^)(#:, ]+)(#[^)]*)?\)`).FindAllStringSubmatch(read(page), -1) {
			if _, err := os.Stat(filepath.Join("../..", filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	_, code, _ := strings.Cut(readme, "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if !strings.Contains(unindented(read("example_test.go")), unindented(code)) {
		t.Error("the Go of README.md is not in example_test.go")
	}
	figures := regexp.MustCompile(`(?m)^\|.*\| ([\d.]+ \S+) \| ([\d.]+ \S+ \([\w-]+\)) \|$`).FindAllStringSubmatch(readme, -1)
	if len(figures) != 3 {
		t.Errorf("%d figures", len(figures))
	}
	spread := regexp.MustCompile(` ±\d+%| \([\d.]+\)|\*\*`)
	rows := map[string]bool{}
	for line := range strings.Lines(results) {
		if cells := strings.Split(spread.ReplaceAllString(line, ""), "|"); len(cells) > 7 {
			rows[strings.TrimSpace(cells[3])+" beside "+strings.TrimSpace(cells[7])] = true
		}
	}
	for _, f := range figures {
		if !rows[f[1]+" beside "+f[2]] {
			t.Errorf("bench/RESULTS.md has no line with %s and %s", f[1], f[2])
		}
	}
}

// typed runs a line of a shell, and returns what it prints. Servers end after what they
// say first.
func typed(t *testing.T, line string) string {
	t.Helper()
	var args []string
	for _, w := range regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`).FindAllString(line, -1) {
		for _, q := range []string{`"`, `'`} {
			if len(w) > 1 && strings.HasPrefix(w, q) && strings.HasSuffix(w, q) {
				w = w[1 : len(w)-1]
				break
			}
		}
		args = append(args, strings.ReplaceAll(w, ":8080", ":0"))
	}
	if args[0] == "cd" {
		t.Chdir(args[1])
		return ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out strings.Builder
	both := io.Writer(&out)
	if args[1] == "serve" || args[1] == "ui" {
		both = writerFunc(func(b []byte) (int, error) {
			if strings.Contains(string(b), "http://") {
				cancel()
			}
			return out.Write(b)
		})
	}
	if code := run(ctx, args[1:], nil, both, both); code != exitOK {
		t.Fatalf("%s: exit code %d: %s", line, code, out.String())
	}
	return out.String()
}
