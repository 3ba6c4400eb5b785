package must

import (
	"errors"
	"testing"
)

// recorder records whether a test was ended.
type recorder struct {
	testing.TB
	fatal []any
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) { r.fatal = args }

// An error ends the test, with its text; without an error the value comes back.
func TestMust(t *testing.T) {
	broken := errors.New("broken")
	r := &recorder{TB: t}
	if Do(r, nil); Get(7, nil)(r) != 7 || Have(7, nil) != 7 || r.fatal != nil {
		t.Error("ended without an error")
	}
	if Do(r, broken); len(r.fatal) != 1 || r.fatal[0] != broken {
		t.Errorf("Do said %v", r.fatal)
	}
	r.fatal = nil
	if Get(7, broken)(r); len(r.fatal) != 1 {
		t.Errorf("Get said %v", r.fatal)
	}
	defer func() {
		if recover() != broken {
			t.Error("Have did not panic")
		}
	}()
	Have(7, broken)
}
