package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/report"
)

// A message says what is wrong with a long argument and does not repeat it.
func TestLongArgument(t *testing.T) {
	for _, arg := range []string{strings.Repeat("x", 100_000), strings.Repeat("é/", 50_000), strings.Repeat("a b ", 25_000)} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"info", arg}, nil, &out, &errs); code == exitOK {
			t.Error("a file with such a name")
		}
		if n := errs.Len(); n == 0 || n > 8100 || !utf8.Valid(errs.Bytes()) {
			t.Errorf("%.10q…: a message of %d bytes: %.300q", arg, n, errs.String())
		}
	}
}

func TestEscape(t *testing.T) {
	for _, c := range []struct{ in, keep, want string }{
		{"", "", ""},
		{"temp_2m", "", "temp_2m"},
		{`back\slash "quotes" 'n spaces`, "", `back\slash "quotes" 'n spaces`},
		{"Füße 温度 שלום סלע\u200f 👩\u200d🔬 \ufffd", "", "Füße 温度 שלום סלע\u200f 👩\u200d🔬 \ufffd"},
		{"a\x1b[2Jb", "", `a\u001b[2Jb`},
		{"\x00\a\b\n\r\t\x7f", "", `\u0000\u0007\u0008\n\r\t\u007f`},
		{"C1 \u009b31m", "", `C1 \u009b31m`},
		{"lines\u2028and\u2029more", "", `lines\u2028and\u2029more`},
		{"gpj\u202eexe\u202c \u2067x\u2069", "", `gpj\u202eexe\u202c \u2067x\u2069`},
		{"\xff\xfe ok \xc3", "", `\xff\xfe ok \xc3`},
		{"\xed\xa0\x80", "", `\xed\xa0\x80`},
		{"a\tb\nc", "\t", "a\tb\\nc"},
	} {
		got := report.Escape(c.in, c.keep)
		if got != c.want {
			t.Errorf("%q: %s, not %s", c.in, got, c.want)
		}
		if again := report.Escape(got, c.keep); again != got {
			t.Errorf("%q: escaped again it is %s", c.in, again)
		}
	}
}

// What arguments print as is escaped, the format is not.
func TestSay(t *testing.T) {
	const evil = "a\x1b[2J\nb"
	const tame = `a\u001b[2J\nb`
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	say(cmd, "%s|%v|%v|%v|%q|%-*s|%d|%.1f|%[2]v", evil, evil, errors.New(evil), []string{evil}, "\x1b", 4, "ab", int64(7), 1.25)
	want := fmt.Sprintf("%[1]s|%[1]s|%[1]s|[%[1]s]|%[2]s|ab  |7|1.2|%[1]s\n", tame, `"\x1b"`)
	if got := out.String(); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	out.Reset()
	printIndented(cmd, "one\ttab\r\n\r\n\x1bc\n\n")
	if got, want := out.String(), "    one\ttab\n    \n    \\u001bc\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// JSON says the same with escapes.
func TestJSONIsExact(t *testing.T) {
	in := map[string]any{"name\x7f\u202e": "\x00\x1b[31m\u009b\u2028\u2066 é \t\n", "raw": json.RawMessage("[\"\u0085\x7f\"]")}
	for _, print := range []func(*cobra.Command, any) error{printJSON, printJSONLine} {
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		must.Do(t, print(cmd, in))
		if text := out.String(); report.Escape(text, "\n") != text {
			t.Errorf("%q has control characters", text)
		}
		var got map[string]any
		must.Do(t, json.Unmarshal(out.Bytes(), &got))
		for k, v := range map[string]any{"name\x7f\u202e": in["name\x7f\u202e"], "raw": []any{"\u0085\x7f"}} {
			if fmt.Sprint(got[k]) != fmt.Sprint(v) {
				t.Errorf("%q: %q, not %q", k, got[k], v)
			}
		}
	}
}

// Nothing is printed around say.
func TestCommandsPrintSafely(t *testing.T) {
	files := must.Get(os.ReadDir("."))(t)
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file := must.Get(parser.ParseFile(fset, f.Name(), nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "say" {
					seen++
				}
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch {
			case (x.Name == "cmd" || x.Name == "root") && strings.HasPrefix(sel.Sel.Name, "Print"),
				x.Name == "fmt" && strings.HasPrefix(sel.Sel.Name, "Print"):
				t.Errorf("%v: %s.%s: print with say", fset.Position(call.Pos()), x.Name, sel.Sel.Name)
			}
			return true
		})
	}
	if seen < 50 {
		t.Errorf("only %d calls of say were found", seen)
	}
}
