package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// Report is a question about a database that any reader may ask. A command line of
// the program answers it with --json.
type Report struct {
	// Kind is the command: log, show, diff, ls, tree, info, stats, branch, tag
	// or blame.
	Kind string
	// Rev is the version, "" for main. To is the one that diff compares it with.
	Rev, To string
	// Path is a node; "" is the root.
	Path string
	// Number bounds a log; 0 is 100.
	Number int
	// Values has diff compare values too.
	Values bool
}

// MaxReport bounds the answer to a [Report], in bytes.
const MaxReport = 32 << 20

// Kinds of reports, and their parameters. Those of any target need no versions.
var reports = map[string]struct{ path, lines, any bool }{
	"log":    {path: true, lines: true},
	"show":   {},
	"diff":   {path: true, lines: true},
	"ls":     {path: true, lines: true, any: true},
	"tree":   {path: true, lines: true, any: true},
	"info":   {path: true, any: true},
	"stats":  {},
	"branch": {lines: true},
	"tag":    {lines: true},
	"blame":  {path: true, lines: true},
}

// ReportError is a command that did not answer.
type ReportError struct {
	Code    int // its exit code
	Message string
}

// Error implements error.
func (e *ReportError) Error() string { return e.Message }

// Is maps exit codes of the command line to their errors.
func (e *ReportError) Is(target error) bool {
	switch e.Code {
	case 3:
		return fault.Matches(txn.ErrConflict, target)
	case 4:
		return fault.Matches(kv.ErrNotFound, target)
	case 5:
		return fault.Matches(kv.ErrCorrupt, target)
	}
	return false
}

// ErrReport means that a report is not described well.
var ErrReport = errors.New("serve: bad report")

// Report answers a question. lines means that the answer has a JSON value on
// each line, else it is one value. A result over MaxReport is kv.ErrTooLarge.
// Revisions are resolved first, so that the command line gets full commit ids,
// and input of a client is never parsed as an option or as another target.
func (t *Table) Report(ctx context.Context, name string, r Report) (answer []byte, lines bool, err error) {
	kind, ok := reports[r.Kind]
	if !ok {
		return nil, false, fmt.Errorf("%w: no kind %q", ErrReport, r.Kind)
	}
	s, err := t.find(name)
	if err != nil {
		return nil, false, err
	}
	if t.o.Run == nil {
		return nil, false, fmt.Errorf("report: %w by this process", errors.ErrUnsupported)
	}
	path := strings.Trim(r.Path, "/")
	if path != "" && !kind.path || strings.ContainsAny(path, "|\x00\n") {
		return nil, false, fmt.Errorf("%w: %s has no path %q", ErrReport, r.Kind, path)
	}
	if s.src != nil && kind.any {
		answer, err = t.reportTarget(ctx, s, r, path)
		return answer, kind.lines, err
	}
	db, err := s.database()
	if err != nil {
		return nil, false, err
	}
	id, err := db.Resolve(ctx, r.Rev)
	if err != nil {
		return nil, false, err
	}
	args := []string{r.Kind, "--json"}
	switch {
	case r.Kind == "log" && r.Number <= 0:
		args = append(args, "-n", "100")
	case r.Kind == "log":
		args = append(args, "-n", strconv.Itoa(r.Number))
	case r.Kind == "diff" && r.Values:
		args = append(args, "--values")
	}
	target := db.Dir() + "@" + id.String()
	if path != "" {
		target += ":" + path
	}
	args = append(args, "--", target)
	if r.Kind == "diff" {
		to, err := db.Resolve(ctx, r.To)
		if err != nil {
			return nil, false, err
		}
		args = append(args, to.String())
	}
	answer, err = t.ask(ctx, &Command{Args: args})
	var failed *ReportError
	if errors.As(err, &failed) {
		failed.Message = strings.ReplaceAll(failed.Message, db.Dir(), name)
	}
	return answer, kind.lines, err
}

// reportTarget answers a question about a target.
func (t *Table) reportTarget(ctx context.Context, s *served, r Report, path string) ([]byte, error) {
	if err := s.noVersion(r.Rev); err != nil {
		return nil, err
	}
	store, err := s.src.Hierarchy(ctx)
	if err != nil {
		return nil, err
	}
	return t.ask(ctx, &Command{Args: []string{r.Kind, "--json", "--", s.name}, View: store, Path: path})
}

// ask runs a command of this file and returns its output.
func (t *Table) ask(ctx context.Context, c *Command) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &bounded{limit: MaxReport, full: cancel}
	said := &bounded{limit: 64 << 10, full: func() {}}
	c.Stdin, c.Stdout, c.Stderr, c.Held = strings.NewReader(""), out, said, t.held()
	code := t.o.Run(ctx, c)
	switch {
	case out.over:
		return nil, fmt.Errorf("report: more than %d MiB: %w", MaxReport>>20, kv.ErrTooLarge)
	case code != 0:
		text := strings.TrimSpace(said.b.String())
		if i := strings.LastIndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
		return nil, &ReportError{Code: code, Message: strings.TrimPrefix(text, "zarrdb: ")}
	}
	return out.b.Bytes(), nil
}

// bounded keeps written bytes up to a limit.
type bounded struct {
	b     bytes.Buffer
	limit int
	over  bool
	full  func()
}

func (w *bounded) Write(p []byte) (int, error) {
	if w.b.Len()+len(p) > w.limit {
		w.over = true
		w.full()
		return 0, io.ErrShortWrite
	}
	return w.b.Write(p)
}

// Reports lists the kinds of reports.
func Reports() []string {
	var kinds []string
	for kind := range reports {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}
