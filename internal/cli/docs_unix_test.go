//go:build unix

package cli

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/internal/must"
)

var updateDocs = flag.Bool("update-docs", false, "write the output of the commands into the pages of docs/, and docs/reference.md")

// notRun is how many blocks of all pages are marked "not-run".
const notRun = 13

// TestDocs runs the pages. A block in a page is one of these:
//
//	console        commands behind "$ ", with "> " before further lines, and their output, which is compared.
//	               A page is one session of a shell. Servers run until the page ends.
//	NAME           where the first line is a comment with the name of a file: the file. A file of this
//	               repository has the lines of the block, others are written for the commands.
//	python         with ">>> ": run by python/tests/test_docs.py; in README.md only
//	go             in README.md: part of example_test.go
//	text           a picture or the text of a message
//	NAME not-run   what cannot be run here; their number is asserted
//
// Without the environment of Python that "make docs-test" makes, and without tools that pages
// use, a page is run up to the first command that needs them.
func TestDocs(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("pages show the tools of Linux, and take minutes")
	}
	skipped, all := 0, true
	for _, page := range pages(t) {
		ran := false
		t.Run(page, func(t *testing.T) { ran = true; skipped += testPage(t, page) })
		all = all && ran // not where -run selects some
	}
	if all && skipped != notRun {
		t.Errorf("%d blocks are marked as not run, not %d", skipped, notRun)
	}
}

// pages are the pages for users, and those that fit more patterns.
func pages(t *testing.T, more ...string) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range append([]string{"docs/*.md", "docs/guide/*.md"}, more...) {
		for _, path := range must.Get(filepath.Glob("../../" + pattern))(t) {
			found = append(found, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
		}
	}
	return found
}

var (
	blocks   = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	fileName = regexp.MustCompile(`^(?:#|//) ([\w./-]+)\n`)
)

func testPage(t *testing.T, name string) (skipped int) {
	root := mustAbs(t, "../..")
	page := filepath.Join(root, name)
	text := string(must.Get(os.ReadFile(page))(t))
	var sh *shell
	got := blocks.ReplaceAllStringFunc(text, func(block string) string {
		m := blocks.FindStringSubmatch(block)
		info, body := m[1], m[2]
		file := fileName.FindStringSubmatch(body)
		if sh == nil && (info == "console" || file != nil) {
			sh = newShell(t, text)
		} else if sh != nil && sh.ended && !strings.HasSuffix(info, " not-run") {
			return block
		}
		switch {
		case strings.HasSuffix(info, " not-run"):
			skipped++
		case info == "console":
			return "```console\n" + sh.session(t, body) + "```"
		case info == "text" && !strings.Contains(body, "$ "):
		case file != nil:
			if b, err := os.ReadFile(filepath.Join(root, file[1])); err == nil {
				if _, lines, _ := strings.Cut(body, "\n"); !strings.Contains(string(b), lines) {
					t.Errorf("%s of %s has other lines than the page", file[1], name)
				}
			} else {
				sh.write(t, file[1], body)
			}
		case name == "README.md" && (info == "go" || info == "python"):
		default:
			t.Errorf("%s: a block that is neither run nor marked (%q): %s", name, info, body)
		}
		return block
	})
	got = mask(got)
	if *updateDocs {
		must.Do(t, os.WriteFile(page, []byte(got), 0o644))
	} else if want := mask(text); got != want {
		t.Errorf("%s is stale (make docs-update writes it): %s", name, firstDifference(want, got))
	}
	return skipped
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d is\n%s\nnow it would be\n%s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, now %d", len(w), len(g))
}

// ids finds ids of commits and of sessions, which differ from run to run; pages show others in their place.
var ids = regexp.MustCompile(`\b(?:[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{26}|[0-9a-f]{20}|[0-9a-f]{16}|[0-9a-f]{10})\b`)

// masks are other parts of an output that differ from run to run.
var masks = []struct {
	part *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d{5}\b`), "127.0.0.1:9000"},
	{regexp.MustCompile(`:8080/[\w-]{20,}/`), ":8080/SECRET/"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\b`), "2026-11-29 12:00:00"},
	{regexp.MustCompile(`(expired on )20\d\d-\d\d-\d\d`), "${1}2026-11-29"},
	{regexp.MustCompile(`\b\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d\b`), "Sun, 29 Nov 2026 12:00:00"},
	{regexp.MustCompile(`(?m)(\d\d:\d\d:\d\d |^Author: +|\()[\w.-]+@[\w.-]*\w`), "${1}ann@lab"},
	{regexp.MustCompile(`\(process \d+\) on [\w.-]+`), "(process 4711) on lab"},
	{regexp.MustCompile(`mtime:\d+`), "mtime:1764410400000000000"},
	{regexp.MustCompile(`(\d pages \()[\d.]+ \w+\)`), "${1}23 KiB)"},
	{regexp.MustCompile(`[\d.]+ \w+ of index`), "23 KiB of index"},
}

// mask replaces what differs from run to run in the commands and outputs of a page by what the page shows.
func mask(page string) string {
	shown := map[string]string{}
	return blocks.ReplaceAllStringFunc(page, func(block string) string {
		if !strings.HasPrefix(block, "```console") {
			return block
		}
		return maskBlock(block, shown)
	})
}

// maskBlock replaces the ids in the order of their appearance, the same for an id and for its beginning.
func maskBlock(s string, shown map[string]string) string {
	s = ids.ReplaceAllStringFunc(s, func(id string) string {
		if strings.Trim(id, "0123456789") == "" && len(id) != 10 { // a number
			return id
		}
		key := id[:10]
		if _, ok := shown[key]; !ok {
			shown[key] = fmt.Sprintf("%x", sha256.Sum256([]byte("id "+strconv.Itoa(len(shown)))))
		}
		return shown[key][:len(id)]
	})
	for _, m := range masks {
		s = m.part.ReplaceAllString(s, m.by)
	}
	return s
}

// A shell runs the commands of a page.
type shell struct {
	in    io.Writer
	out   *bufio.Reader
	root  string            // shown as /data
	dir   string            // where the shell is
	ports map[string]string // as the page has them, to those of the servers that run
	files int               // of output of servers
	ended bool              // the rest of the page cannot be run
}

const endOfOutput = "\x01end "

func newShell(t *testing.T, page string) *shell {
	t.Helper()
	python := os.Getenv("ZARRDB_PYTHON")
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir = dir
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("archive"))
	bucket := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(bucket.Close)
	program := must.Get(exec.LookPath("zarrdb"))(t)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TZ=UTC", "LC_ALL=C.UTF-8", "TMPDIR="+t.TempDir(), "USER=ann", "COLUMNS=100",
		"PATH="+filepath.Dir(python)+string(os.PathListSeparator)+os.Getenv("PATH"), "ZARRDB_BINARY="+program,
		"PYTHONPATH="+must.Get(filepath.Abs("../../python"))(t), // the environment may be another checkout's
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore",
		"AWS_ENDPOINT_URL_S3="+bucket.URL, "AWS_NO_SIGN_REQUEST=yes", "AWS_CONFIG_FILE=none", "AWS_SHARED_CREDENTIALS_FILE=none")
	s := &shell{in: must.Get(cmd.StdinPipe())(t), out: bufio.NewReader(must.Get(cmd.StdoutPipe())(t)), root: dir, dir: dir, ports: map[string]string{}}
	cmd.Stderr = cmd.Stdout
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		s.run(t, "kill $(jobs -p) 2>/dev/null; wait")
		_, _ = io.WriteString(s.in, "exit\n")
		_ = cmd.Wait()
		endHolders(dir)
	})
	if strings.Contains(page, "\n$ cd tour\n") {
		s.run(t, "zarrdb demo --dir tour")
	}
	return s
}

// endHolders ends the processes that programs started to serve the databases below dir.
func endHolders(dir string) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		var holder struct{ Pid int }
		if b, err := os.ReadFile(path); err == nil && filepath.Base(path) == "HOLDER" && json.Unmarshal(b, &holder) == nil && holder.Pid > 0 && holder.Pid != os.Getpid() {
			_ = syscall.Kill(holder.Pid, syscall.SIGTERM)
			for range 200 { // it removes files of the database
				if syscall.Kill(holder.Pid, 0) != nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		return nil
	})
}

// run runs a command and returns what it prints, and its exit code.
func (s *shell) run(t *testing.T, command string) (string, int) {
	t.Helper()
	for port, now := range s.ports {
		command = strings.ReplaceAll(command, port, now)
	}
	_, err := io.WriteString(s.in, "{ "+command+"\n} </dev/null; code=$?; echo \""+endOfOutput+"$code $PWD\"; (exit $code)\n")
	must.Do(t, err)
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if at := strings.Index(line, endOfOutput); at >= 0 {
			out.WriteString(line[:at])
			code, dir, _ := strings.Cut(strings.TrimSpace(line[at+len(endOfOutput):]), " ")
			s.dir = dir
			return s.shown(out.String()), must.Get(strconv.Atoi(code))(t)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out.String())
		}
		out.WriteString(line)
	}
}

// shown replaces the ports of servers by those that the page has, and the folder of the test by one of a user.
func (s *shell) shown(out string) string {
	out = strings.ReplaceAll(out, s.root, "/data")
	for port, now := range s.ports {
		out = strings.ReplaceAll(out, now, port)
	}
	return out
}

// tools are programs that a machine may not have.
var tools = regexp.MustCompile(`\b(?:python|curl|unzip|openssl)\b`)

// session runs the commands of a block, and returns the block with what they print.
func (s *shell) session(t *testing.T, block string) string {
	t.Helper()
	var out strings.Builder
	lines := strings.SplitAfter(block, "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			continue
		}
		out.WriteString(lines[i])
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "> ") {
			i++
			out.WriteString(lines[i])
			command += lines[i][2:]
		}
		command = strings.TrimSpace(command)
		for _, tool := range tools.FindAllString(command, -1) {
			if _, err := exec.LookPath(tool); err != nil && tool != "python" || tool == "python" && os.Getenv("ZARRDB_PYTHON") == "" {
				t.Logf("the page is run up to %q, which is not here", command)
				s.ended = true
				return block
			}
		}
		run := s.run
		if words := strings.Fields(command); len(words) > 1 && words[0] == "zarrdb" && (words[1] == "serve" || words[1] == "ui") {
			run = s.serve
		}
		printed, code := run(t, command)
		if printed != "" && !strings.HasSuffix(printed, "\n") {
			printed += "\n"
		}
		out.WriteString(printed)
		shown, next, _ := strings.Cut(strings.Join(lines[i+1:], ""), "$ ")
		if code != 0 && !strings.Contains(shown, "zarrdb: ") && !strings.HasPrefix(next, "echo $?") {
			t.Fatalf("%s: exit code %d: %s", command, code, printed)
		}
	}
	return out.String()
}

// write writes a file that the page shows.
func (s *shell) write(t *testing.T, name, body string) {
	t.Helper()
	for port, now := range s.ports {
		body = strings.ReplaceAll(body, port, now)
	}
	path := filepath.Join(s.dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(body), 0o644))
}

var listens = regexp.MustCompile(`https?://127\.0\.0\.1(:\d+)/`)

// serve starts a server on free ports, and returns what it prints until it answers. A page
// in a browser is ended at once.
func (s *shell) serve(t *testing.T, command string) (string, int) {
	t.Helper()
	s.files++
	file := filepath.Join(t.TempDir(), fmt.Sprint("served", s.files))
	s.run(t, regexp.MustCompile(`:\d{4}\b`).ReplaceAllString(command, ":0")+" >"+file+" 2>&1 &")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	printed := func() string { b, _ := os.ReadFile(file); return string(b) }
	for { // until the test's own time is over
		if m := listens.FindStringSubmatch(printed()); m != nil {
			s.ports[":8080"] = m[1]
			if strings.HasPrefix(command, "zarrdb ui") {
				s.run(t, "kill -INT $! && wait $!")
				return s.shown(printed()), 0
			}
			if answer, err := client.Get(m[0] + "-/health"); err == nil {
				_ = answer.Body.Close()
				return s.shown(printed()), 0
			}
		}
		if _, code := s.run(t, "kill -0 $! 2>/dev/null"); code != 0 {
			_, code = s.run(t, "wait $!")
			return strings.ReplaceAll(s.shown(printed()), ":0:", ":8080:"), code
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Links of the pages lead to files and to headings.
func TestLinks(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	for _, page := range pages(t, "docs/design/*.md", "python/*.md") {
		text := string(must.Get(os.ReadFile(filepath.Join("../..", page)))(t))
		for _, m := range regexp.MustCompile(`\]\(([^)(#:, ]*)(#[^)]*)?\)`).FindAllStringSubmatch(blocks.ReplaceAllString(text, ""), -1) {
			to := filepath.Join("../..", filepath.Dir(page), m[1])
			if m[1] == "" {
				to = filepath.Join("../..", page)
			}
			b, err := os.ReadFile(to)
			if info, stat := os.Stat(to); stat == nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			found := m[2] == ""
			for _, h := range heading.FindAllStringSubmatch(string(b), -1) {
				anchor := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(h[1]), "")
				found = found || m[2] == "#"+strings.ReplaceAll(anchor, " ", "-")
			}
			if !found {
				t.Errorf("%s: no heading of %s is %s", page, to, m[2])
			}
		}
	}
}

// The README's Go is an example that is run, and figures of pages are measured.
func TestReadme(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b := must.Get(os.ReadFile(filepath.Join("../..", name)))(t)
		return string(b)
	}
	unindented := func(s string) string { return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(s, "") }
	readme, results := read("README.md"), read("bench/RESULTS.md")
	_, code, _ := strings.Cut(readme, "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if !strings.Contains(unindented(read("example_test.go")), unindented(code)) {
		t.Error("the Go of README.md is not in example_test.go")
	}
	figures := regexp.MustCompile(`(?m)^\|.*\| ([\d.]+ \S+) \| ([\d.]+ \S+ \([\w -]+\)) \|$`).FindAllStringSubmatch(readme+read("docs/guide/choose.md"), -1)
	if len(figures) != 3+11 {
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

// Each message of the page about troubles is in the source.
func TestMessages(t *testing.T) {
	var source strings.Builder
	root := mustAbs(t, "../..")
	must.Do(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			source.Write(must.Get(os.ReadFile(path))(t))
		}
		return err
	}))
	page := string(must.Get(os.ReadFile(filepath.Join(root, "docs/guide/troubleshooting.md")))(t))
	_, page, _ = strings.Cut(page, "## Messages")
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(page, -1)
	for _, m := range messages {
		if !strings.Contains(source.String(), m[1]) {
			t.Errorf("no message has %q", m[1])
		}
	}
	if len(messages) < 40 {
		t.Errorf("%d messages", len(messages))
	}
}

// TestReference compares docs/reference.md with the help of all commands.
func TestReference(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Reference of the commands\n\nWhat `zarrdb help COMMAND` prints. A test keeps this page equal to it. [commands.md](commands.md) is an introduction.\n")
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		var help strings.Builder
		c.SetOut(&help)
		must.Do(t, c.Help())
		text, _, _ := strings.Cut(help.String(), "\nGlobal Flags:")
		fmt.Fprintf(&page, "\n## %s\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSpace(text))
		for _, sub := range c.Commands() {
			all(sub)
		}
	}
	all(newRoot())
	const name = "../../docs/reference.md"
	if *updateDocs {
		must.Do(t, os.WriteFile(name, []byte(page.String()), 0o644))
	} else if want := string(must.Get(os.ReadFile(name))(t)); want != page.String() {
		t.Errorf("docs/reference.md is stale (make docs-update writes it): %s", firstDifference(want, page.String()))
	}
}
