package txn

import (
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// TestSecretsOfVirtualValues makes sure that what people are told of a virtual
// value names its file, and does not give access to it.
func TestSecretsOfVirtualValues(t *testing.T) {
	v := tree.Value{Kind: tree.KindVirtual, Length: 7, Source: tree.Source{URL: "https://joe:hidden@h/a?sig=hidden"}}
	if got := brief(&v); got != "7 bytes of https://h/a?…" {
		t.Errorf("a part: %s", got)
	}
	_, err := (&DB{}).locateWith(t.Context(), v, readBy{}, nil)
	if !errors.Is(err, ErrNoVirtual) || !strings.HasSuffix(err.Error(), " https://h/a?…") {
		t.Errorf("nobody reads it: %v", err)
	}
	v.Source.Whole = true
	if got := brief(&v); got != "https://h/a?…" {
		t.Errorf("a file: %s", got)
	}
}
