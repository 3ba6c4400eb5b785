package elements

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/local"
)

// The environment becomes that of the interpreter: credentials that a program sets are found.
func TestEnviron(t *testing.T) {
	for _, name := range []string{"ZARRDB_TEST_OLD", "ZARRDB_TEST_CHANGED", "ZARRDB_TEST_NEW"} {
		t.Setenv(name, "before")
	}
	must.Do(t, os.Unsetenv("ZARRDB_TEST_NEW"))
	environ := ""
	for _, kv := range os.Environ() {
		if kv != "ZARRDB_TEST_OLD=before" && kv != "ZARRDB_TEST_CHANGED=before" {
			environ += kv + "\x00"
		}
	}
	must.Do(t, setEnviron(environ+"ZARRDB_TEST_CHANGED=a=b\x00ZARRDB_TEST_NEW="))
	for name, want := range map[string]string{"ZARRDB_TEST_CHANGED": "a=b", "ZARRDB_TEST_NEW": ""} {
		if got, ok := os.LookupEnv(name); !ok || got != want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	if got, ok := os.LookupEnv("ZARRDB_TEST_OLD"); ok {
		t.Errorf("it is still set to %q", got)
	}
}

// ZARRDB_CACHE_BYTES has the bytes of decoded chunks; in the engine 0 is the default, and -1 none.
func TestCacheBytes(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0": -1, "1048576": 1 << 20} {
		t.Setenv("ZARRDB_CACHE_BYTES", text)
		if got := must.Get(cacheBytes())(t); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"-1", "1GiB", "9223372036854775808"} {
		t.Setenv("ZARRDB_CACHE_BYTES", text)
		if _, err := cacheBytes(); !errors.Is(err, local.ErrRequest) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// stuck is something open whose end waits for a call of another thread.
type stuck chan struct{}

func (s stuck) close() error {
	<-s
	return nil
}

// The end of a handle does not wait for ever for calls that are under way.
func TestEndWhileCallsLast(t *testing.T) {
	ending := func(ctx context.Context) error {
		s := make(stuck)
		defer close(s)
		const handle = -1
		(&Request{Ints: []int64{handle}}).add(s)
		_, err := (&Request{Op: closing, Handle: handle, Ints: []int64{1}}).Run(ctx)
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ending(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must.Set(t, &closeTime, time.Millisecond)
	must.Do(t, ending(t.Context()))
}
