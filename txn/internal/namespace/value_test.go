package namespace

import (
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Conflicts name the file of a virtual value, and do not give access to it.
func TestBriefHidesSecrets(t *testing.T) {
	v := tree.Value{Kind: tree.KindVirtual, Length: 7, Source: tree.Source{URL: "https://joe:hidden@h/a?sig=hidden"}}
	if got := brief(&v); got != "7 bytes of https://h/a?…" {
		t.Errorf("a part: %s", got)
	}
	v.Source.Whole = true
	if got := brief(&v); got != "https://h/a?…" {
		t.Errorf("a file: %s", got)
	}
}
