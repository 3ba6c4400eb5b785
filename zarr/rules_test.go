package zarr

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// This file holds the specifications to account. testdata/rules.tsv lists every
// sentence that says must, shall or required, in capitals or not, with what it
// asks for in short. What is asked of an implementation has a check in
// rules_core_test.go, rules_codecs_test.go or rules_old_test.go; what is asked of
// authors of specifications, or only mentioned, is marked "-" and has none.

//go:embed testdata/rules.tsv
var rulesText string

// rule is one such sentence. It is told by the document, the section and its
// number among those of the section.
type rule struct {
	document, section string
	n                 int
	digest            string // of the sentence, so that a change of the text shows
	kind              string // "rule" or "-"
	short             string
}

func (r rule) key() string { return fmt.Sprintf("%s: %s %d", r.document, r.section, r.n) }

// checks has a function for each rule, by its key.
type checks map[string]func(t *testing.T)

func listedRules(t *testing.T) (list []rule) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(rulesText))
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		if len(f) != 6 || f[4] != "rule" && f[4] != "-" || f[5] == "" {
			t.Fatalf("rules.tsv: %q", lines.Text())
		}
		n, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatalf("rules.tsv: %q: %v", lines.Text(), err)
		}
		list = append(list, rule{f[0], f[1], n, f[3], f[4], f[5]})
	}
	return list
}

func TestRules(t *testing.T) {
	all := checks{}
	for _, table := range []checks{coreRules, codecRules, oldRules} {
		for key, check := range table {
			if all[key] != nil {
				t.Errorf("%s has two checks", key)
			}
			all[key] = check
		}
	}
	seen, rules := map[string]bool{}, 0
	for _, r := range listedRules(t) {
		if seen[r.key()] {
			t.Errorf("%s is listed twice", r.key())
		}
		seen[r.key()] = true
		check := all[r.key()]
		delete(all, r.key())
		switch {
		case (r.kind == "rule") != (check != nil):
			t.Errorf("%s (%s): %s, has a check: %t", r.key(), r.short, r.kind, check != nil)
		case check != nil:
			rules++
			t.Run(r.key()+"/"+r.short, check)
		}
	}
	for key := range all {
		t.Errorf("%s is not in the list", key)
	}
	if rules < 80 {
		t.Errorf("only %d rules", rules)
	}
}

// TestRulesOfTheText compares the list with the texts of the specifications, if
// the environment variable ZARR_SPECS names a folder that holds them: v1, v2 and
// v3 as in zarr-developers/zarr-specs, and *early_draft.txt.
func TestRulesOfTheText(t *testing.T) {
	dir := os.Getenv("ZARR_SPECS")
	if dir == "" {
		t.Skip("ZARR_SPECS is not set")
	}
	listed := map[string]rule{}
	for _, r := range listedRules(t) {
		listed[r.key()] = r
	}
	must.Do(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		name := documentName(dir, path)
		if err != nil || d.IsDir() || name == "" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, s := range demands(string(text)) {
			sum := sha256.Sum256([]byte(s.text))
			r := rule{document: name, section: s.section, n: s.n, digest: hex.EncodeToString(sum[:4])}
			if listed[r.key()].digest != r.digest {
				t.Errorf("not in the list:\n%s\t%s\t%d\t%s\t?\t%s", r.document, r.section, r.n, r.digest, s.text)
			}
			delete(listed, r.key())
		}
		return err
	}))
	for key := range listed {
		t.Errorf("%s is listed, but not in the texts", key)
	}
}

// documentName is what the list calls a text, "" if it has nothing to do with it.
func documentName(dir, path string) string {
	rel, _ := filepath.Rel(dir, path)
	rel = filepath.ToSlash(rel)
	if strings.HasSuffix(rel, "early_draft.txt") {
		return "early draft"
	}
	if !strings.HasSuffix(rel, ".rst") {
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(rel, "zarr-specs/"), "/")
	if parts[0] != "v3" {
		return parts[0]
	}
	return strings.Join(parts[1:len(parts)-1], "/")
}

// sentence is a sentence of a specification with a word such as MUST.
type sentence struct {
	section string
	n       int
	text    string
}

var (
	demandWord = regexp.MustCompile(`(?i)\b(must|shall|required)\b`)
	itemStart  = regexp.MustCompile(`^([-*]|[0-9#]+\.)\s`)
	underlined = regexp.MustCompile(`^(=+|-+|~+|\^+|"+)$`)
	nextBegins = regexp.MustCompile(`[.:]\s+[A-Z\x60"*]`)
)

// demands finds these sentences in a text in reStructuredText. The paragraph
// about the key words, which most begin with, is none.
func demands(text string) (out []sentence) {
	counts := map[string]int{}
	section := ""
	var paragraph []string
	flush := func() {
		p := strings.Join(strings.Fields(strings.Join(paragraph, " ")), " ")
		paragraph = nil
		for p != "" {
			s := p
			if i := nextBegins.FindStringIndex(p); i != nil {
				s = p[:i[0]+1]
			}
			p = strings.TrimSpace(p[len(s):])
			if demandWord.MatchString(s) && !strings.HasPrefix(s, "The key words") {
				counts[section]++
				out = append(out, sentence{section, counts[section], s})
			}
		}
	}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		s := strings.TrimSpace(lines[i])
		switch {
		case s != "" && i+1 < len(lines) && len(lines[i+1]) >= 3 && underlined.MatchString(strings.TrimSpace(lines[i+1])) && !underlined.MatchString(s):
			flush()
			section = strings.Trim(s, "`")
			i++
		case s == "" || strings.HasPrefix(s, ".. _"):
			flush()
		case itemStart.MatchString(s):
			flush()
			paragraph = append(paragraph, s)
		default:
			paragraph = append(paragraph, s)
		}
	}
	flush()
	return out
}
