package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// heldOver are the functions that hold a mutex over a call that takes a context, with the reason.
// A caller that waits for such a mutex waits as long as that call takes, whatever its own context
// says. What may wait for a request or another process is done under a ctxlock.Lock.
var heldOver = map[string]string{
	"engine/internal/convert missingChunk": "it encodes one chunk",
	"kv/gcskv defaultSource":               "files of this machine, once",
	"kv/index ingestFrom":                  "this machine's disk",
	"kv/pack lend":                         "one pack, once",
	"kv/pack Heal":                         "packs are repaired by one at a time",
	"kv/zipkv Delete":                      "a zip file has one writer at a time",
	"kv/zipkv SetValue":                    "a zip file has one writer at a time",
}

// A mutex is for memory alone.
func TestNoWaitUnderMutex(t *testing.T) {
	found := map[string]string{}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, file := range p.GoFiles {
			fset := token.NewFileSet()
			f := must.Get(parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, 0))(t)
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					waitsUnderMutex(fn.Body, func(call *ast.CallExpr, mutex string) {
						found[name+" "+fn.Name.Name] = fset.Position(call.Pos()).String() + ": " + mutex
					})
				}
			}
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(found)) {
		if heldOver[fn] == "" {
			t.Errorf("%s is held over a call that takes a context, in %s", found[fn], fn)
		}
	}
	for fn := range heldOver {
		if found[fn] == "" {
			t.Errorf("%s holds no mutex over a call any more", fn)
		}
	}
}

// waitsUnderMutex calls report for each call that gets a context between Lock and Unlock of a mutex.
func waitsUnderMutex(body *ast.BlockStmt, report func(call *ast.CallExpr, mutex string)) {
	held := map[string]bool{}
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit: // it runs later, as far as this test knows
			outer := held
			held = map[string]bool{}
			ast.Inspect(n.Body, look)
			held = outer
			return false
		case *ast.DeferStmt:
			return false
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 0 {
				switch fn.Sel.Name {
				case "Lock", "RLock":
					held[spelled(fn.X)] = true
				case "Unlock", "RUnlock":
					delete(held, spelled(fn.X))
				}
			}
			if len(held) > 0 && len(n.Args) > 0 && isContext(n.Args[0]) && !strings.HasPrefix(spelled(n.Fun), "context.") && !strings.HasSuffix(spelled(n.Fun), "Context") {
				report(n, slices.Sorted(maps.Keys(held))[0])
			}
		}
		return true
	}
	ast.Inspect(body, look)
}

func isContext(e ast.Expr) bool {
	s := spelled(e)
	return s == "ctx" || strings.HasSuffix(s, ".ctx") || s == "context.Background()"
}

// spelled is an expression as it is written, as far as names go.
func spelled(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return spelled(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return spelled(e.X)
	case *ast.CallExpr:
		return spelled(e.Fun) + "()"
	}
	return "?"
}
