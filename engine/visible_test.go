package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// TestVisible: what VERSIONING.md promises is what `go doc` shows. Methods have comments and
// are written where the user imports their type: `go doc` finds none of an embedded type.
func TestVisible(t *testing.T) {
	found := 0
	for _, dir := range []string{"..", ".", "../zarr", "../zarr/meta", "../kv"} {
		fset := token.NewFileSet()
		var pkg []*ast.File
		for _, name := range must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t) {
			if !strings.HasSuffix(name, "_test.go") {
				pkg = append(pkg, must.Get(parser.ParseFile(fset, name, nil, parser.ParseComments))(t))
			}
		}
		for _, f := range pkg {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Name.IsExported() && ofExported(n.Recv) {
						if found++; n.Doc == nil {
							t.Errorf("%s: %s has no comment", fset.Position(n.Pos()), n.Name)
						}
					}
					return false
				case *ast.TypeSpec:
					if st, ok := n.Type.(*ast.StructType); ok && n.Name.IsExported() {
						for _, f := range st.Fields.List {
							if len(f.Names) == 0 && hides(f.Type, pkg) {
								t.Errorf("%s: %s has methods of a type that it embeds", fset.Position(f.Pos()), n.Name)
							}
						}
					}
					return false
				}
				return true
			})
		}
	}
	if found < 300 {
		t.Errorf("only %d functions were found", found)
	}
}

// ofExported reports whether a receiver, nil for none, is of a type that users can name.
func ofExported(recv *ast.FieldList) bool { return recv == nil || ast.IsExported(receiver(recv)) }

// receiver returns the name of the type of a receiver.
func receiver(recv *ast.FieldList) string {
	name := recv.List[0].Type
	if p, ok := name.(*ast.StarExpr); ok {
		name = p.X
	}
	if g, ok := name.(*ast.IndexExpr); ok {
		name = g.X
	}
	id, ok := name.(*ast.Ident)
	if !ok {
		return ""
	}
	return id.Name
}

// hides reports whether a type that is embedded has exported methods, and users do not see it: it is
// of a package that is not promised, or its name is not exported.
func hides(embedded ast.Expr, pkg []*ast.File) bool {
	if p, ok := embedded.(*ast.StarExpr); ok {
		embedded = p.X
	}
	if sel, ok := embedded.(*ast.SelectorExpr); ok {
		name := sel.X.(*ast.Ident).Name
		return name != "zarr" && name != "kv" && name != "meta"
	}
	id := embedded.(*ast.Ident)
	found := false
	for _, f := range pkg {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				found = found || n.Recv != nil && n.Name.IsExported() && receiver(n.Recv) == id.Name
				return false
			case *ast.TypeSpec:
				found = found || n.Name.Name == id.Name && n.Assign.IsValid()
			}
			return !found
		})
	}
	return found && !id.IsExported()
}
