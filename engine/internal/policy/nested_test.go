package policy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// meeting is a store in which the first listing waits for a second one.
type meeting struct {
	*kv.Mem
	n    atomic.Int64
	both chan struct{}
	err  error // of all listings
}

func (m *meeting) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	if m.n.Add(1) == 2 {
		close(m.both)
	}
	err := m.err
	select {
	case <-m.both:
	case <-time.After(time.Minute):
		err = errors.New("no other listing is under way")
	}
	if err != nil {
		return func(yield func(string, error) bool) { yield("", err) }
	}
	return m.Mem.List(ctx, o)
}

// Arrays without a chunk at the origin are listed together, not one after the other.
func TestListSeparatorsTogether(t *testing.T) {
	failed := errors.New("of a test")
	for _, want := range []error{nil, failed} {
		m := &meeting{Mem: kv.NewMem(), both: make(chan struct{}), err: want}
		var docs []string
		for i := range 20 {
			docs = append(docs, fmt.Sprintf(`"a%d/.zarray":{"zarr_format":2,"shape":[4,4]}`, i))
			must.Do(t, m.Set(t.Context(), fmt.Sprintf("a%d/1/1", i), nil))
		}
		text, err := NewSeparators(m).Correct(t.Context(), ".zmetadata", []byte(`{"metadata":{`+strings.Join(docs, ",")+`}}`))
		if !errors.Is(err, want) {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), `"dimension_separator": "/"`); want == nil && (n != 20 || m.n.Load() != 20) {
			t.Errorf("%d separators of 20 after %d listings: %s", n, m.n.Load(), text)
		}
	}
}
