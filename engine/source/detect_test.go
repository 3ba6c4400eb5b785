package source

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// lockedFolder is a store in which a folder cannot be listed.
type lockedFolder struct{ *kv.Mem }

func (lockedFolder) List(_ context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if strings.HasPrefix("locked/", o.Prefix) {
			yield("", fs.ErrPermission)
		}
	}
}

// A directory of no known format is searched for nodes only for a hint. What cannot be
// listed in it does not become the error.
func TestHintOfLockedDirectory(t *testing.T) {
	for _, c := range []struct {
		url  string
		hint bool
	}{{"file:///d/", true}, {"file:///d.zip|zip:", false}} {
		u, err := zurl.Parse(c.url)
		must.Do(t, err)
		env := &Env{Adapters: DefaultAdapters()}
		_, err = env.detect(bg, Place{URL: u, View: lockedFolder{kv.NewMem()}, Kind: Directory})
		if errors.Is(err, ErrFormat) != c.hint || errors.Is(err, fs.ErrPermission) == c.hint {
			t.Errorf("%s: %v", c.url, err)
		}
	}
}
