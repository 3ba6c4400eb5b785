package main

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"testing"
)

// The bodies of functions of this module are checked, those of other modules are left out.
func TestParse(t *testing.T) {
	dir := t.TempDir()
	for name, whole := range map[string]bool{
		filepath.Join(dir, "a.go"):          true,
		filepath.Join(dir, "sub", "a.go"):   true,
		filepath.Join(dir+"-other", "a.go"): false,
		filepath.Join(t.TempDir(), "a.go"):  false,
	} {
		f, err := parse(token.NewFileSet(), dir, name, []byte("package a\n\nfunc f() int { return \"\" }\n"))
		if err != nil {
			t.Fatal(err)
		}
		if body := f.Decls[0].(*ast.FuncDecl).Body; (body != nil) != whole {
			t.Errorf("%s: body %v, want it: %v", name, body, whole)
		}
	}
	if _, err := parse(token.NewFileSet(), dir, filepath.Join(dir, "a.go"), []byte("package")); err == nil {
		t.Error("half a file has no error")
	}
}
