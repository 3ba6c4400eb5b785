package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestKinds(t *testing.T) {
	missing := New("kv: not found", ErrNotFound)
	other := New("zarr: not found", ErrNotFound, ErrCorrupt)
	wrapped := fmt.Errorf("get a: %w", missing)
	for _, c := range []struct {
		what        string
		err, target error
		want        bool
	}{
		{"itself", wrapped, missing, true},
		{"its kind", wrapped, ErrNotFound, true},
		{"another kind", wrapped, ErrCorrupt, false},
		{"another sentinel of the kind", wrapped, other, false},
		{"a second kind", other, ErrCorrupt, true},
		{"a kind is not a sentinel", ErrNotFound, missing, false},
	} {
		if got := errors.Is(c.err, c.target); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if !Matches(missing, missing) || !Matches(missing, ErrNotFound) || Matches(missing, other) {
		t.Error("Matches does not find the sentinel and its kind alone")
	}
}
