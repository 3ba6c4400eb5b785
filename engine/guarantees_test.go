package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

var provenBy = regexp.MustCompile("([a-z0-9/]+)\\.`(Test[A-Za-z0-9]+)`")

// Every test that docs/guarantees.md names exists, and every row names one.
func TestGuaranteesAreTested(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/guarantees.md"))(t)
	sources := map[string]string{}
	found := provenBy.FindAllStringSubmatch(string(page), -1)
	if len(found) < 40 {
		t.Fatalf("only %d proofs are named", len(found))
	}
	for _, m := range found {
		pkg, name := m[1], m[2]
		if _, ok := sources[pkg]; !ok {
			dir := "../" + pkg
			if pkg == "zarrdb" {
				dir = ".."
			}
			files := must.Get(filepath.Glob(dir + "/*_test.go"))(t)
			for _, f := range files {
				b := must.Get(os.ReadFile(f))(t)
				sources[pkg] += string(b)
			}
		}
		if !strings.Contains(sources[pkg], "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("%s.%s does not exist", pkg, name)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(string(page), -1) {
		head := strings.HasPrefix(row, "|---") || strings.HasSuffix(row, "| proof |") || strings.HasPrefix(row, "| feature |")
		if !head && !provenBy.MatchString(row) {
			t.Errorf("nothing proves %s", row)
		}
	}
}

// The files and packages that docs/architecture.md names exist.
func TestArchitectureNamesFiles(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`([a-z0-9_*]+(?:/[a-z0-9_*]+)+(?:\\.[a-z]+)?)`").FindAllStringSubmatch(string(page), -1)
	if len(found) < 40 {
		t.Fatalf("only %d files are named", len(found))
	}
	for _, m := range found {
		if files, err := filepath.Glob("../" + m[1]); err != nil || len(files) == 0 {
			t.Errorf("%s does not exist", m[1])
		}
	}
}
