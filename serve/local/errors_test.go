package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// An error is the same for errors.Is on both sides, and its code is documented.
func TestErrors(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/protocol.md"))(t)
	over := func(err error) error {
		meta := must.Get(json.Marshal(failure(err)))(t)
		return remote(meta)
	}
	first := map[string]bool{}
	for _, c := range codes {
		if !strings.Contains(string(doc), "`"+c.code+"`") {
			t.Errorf("docs/protocol.md does not have %s", c.code)
		}
		err := fmt.Errorf("read /x: %w", c.err)
		got := over(err)
		if first[c.code] {
			continue // two errors have one code
		}
		first[c.code] = true
		if !errors.Is(got, c.err) || got.Error() != err.Error() {
			t.Errorf("%s: %v is %v there", c.code, got, err)
		}
	}
	if got := over(kv.ErrNotFound); got != kv.ErrNotFound {
		t.Errorf("%v", got)
	}
	if got := over(txn.ErrExpired); !errors.Is(got, txn.ErrNoRef) {
		t.Errorf("%v", got)
	}
	if got := over(errors.New("boom")); got.Error() != "boom" {
		t.Errorf("%v", got)
	}
	for _, want := range []*engine.ChangedError{
		{Key: "k", Want: engine.Expect{Absent: true}, Have: kv.ID{1}}, {Key: "k", Want: engine.Expect{ID: kv.ID{2}}, Have: kv.ID{3}}, {Key: "k", Want: engine.Expect{ID: kv.ID{2}}},
	} {
		var got *engine.ChangedError
		if err := over(fmt.Errorf("x: %w", want)); !errors.As(err, &got) || *got != *want {
			t.Errorf("%+v, want %+v", err, want)
		}
	}
}

// A name of a socket, an error, a reply that makes no sense is an error.
func FuzzRemote(f *testing.F) {
	f.Add([]byte(`{"code":"conflict","message":"m","branch":"b","conflicts":[{"kind":"chunk","path":"x","chunk":[1]}]}`))
	f.Add([]byte(`{"code":"changed","have":"00ff","want":"zz"}`))
	f.Fuzz(func(t *testing.T, meta []byte) {
		if err := remote(meta); err == nil {
			t.Error("no error")
		}
	})
}
