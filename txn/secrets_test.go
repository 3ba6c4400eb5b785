package txn

import (
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// The error names the file of a virtual value, and does not give access to it.
func TestSecretsOfVirtualValues(t *testing.T) {
	v := tree.Value{Kind: tree.KindVirtual, Length: 7, Source: tree.Source{URL: "https://joe:hidden@h/a?sig=hidden"}}
	_, err := (&DB{}).locate(t.Context(), v, readBy{}, nil)
	if !errors.Is(err, ErrNoVirtual) || !strings.HasSuffix(err.Error(), " https://h/a?…") {
		t.Errorf("the secret is not read: %v", err)
	}
}
