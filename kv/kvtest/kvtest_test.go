package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

func TestRun(t *testing.T) {
	Run(t, func(*testing.T) kv.Reader { return kv.NewMem() }, Options{})
}

func TestCount(t *testing.T) {
	view, n := Count(kv.NewMem())
	st := view.(kv.Store)
	for _, key := range []string{"a", "b"} {
		must.Do(t, st.Set(bg, key, nil))
	}
	must.Get(kv.Keys(bg, st, ""))(t)
	must.Get(st.Get(bg, "a", kv.All()))(t)
	if got, want := fmt.Sprint(n.Reset()), "map[get:1 list:1 next:2 set:2]"; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	if len(n.Reset()) != 0 {
		t.Error("Reset did not reset")
	}
}

// mutants are stores with one mistake each, which the suite must find.
var mutants = map[string]func() kv.Reader{
	"wraps not found": func() kv.Reader { return wrapsNotFound{kv.NewMem()} },
	"keeps slices":    func() kv.Reader { return &keepsSlices{Mem: kv.NewMem()} },
	"ignores after":   func() kv.Reader { return ignoresAfter{kv.NewMem()} },
	"after inclusive": func() kv.Reader { return afterInclusive{kv.NewMem()} },
	"prefix is path":  func() kv.Reader { return prefixIsPath{kv.NewMem()} },
	"clamps ranges":   func() kv.Reader { return clampsRanges{kv.NewMem()} },
	"key order":       func() kv.Reader { return keyOrder{kv.NewMem()} },
	"half deletes":    func() kv.Reader { return halfDeletes{kv.NewMem()} },
	"any key":         func() kv.Reader { return anyKey{kv.NewMem()} },
	"never canceled":  func() kv.Reader { return neverCanceled{kv.NewMem()} },
	"torn values":     func() kv.Reader { return newTornValues() },
}

func TestSuiteFindsMistakes(t *testing.T) {
	if name := os.Getenv("KVTEST_MUTANT"); name != "" {
		Run(t, func(*testing.T) kv.Reader { return mutants[name]() }, Options{Steps: 200})
		return
	}
	if testing.Short() {
		t.Skip("one process for each mistake")
	}
	for name := range mutants {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSuiteFindsMistakes$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), "KVTEST_MUTANT="+name)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !bytes.Contains(out, []byte("--- FAIL")) {
			t.Errorf("the suite passes a store that %q: %v\n%s", name, err, out)
		}
	}
}

type wrapsNotFound struct{ *kv.Mem }

func (m wrapsNotFound) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := m.Mem.Get(ctx, key, rng)
	if err != nil {
		err = fmt.Errorf("get %s: %w", key, err)
	}
	return b, err
}

type keepsSlices struct {
	*kv.Mem
	last []byte
}

func (m *keepsSlices) Set(ctx context.Context, key string, value []byte) error {
	if key == "mine" {
		m.last = value
	}
	return m.Mem.Set(ctx, key, value)
}

func (m *keepsSlices) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if key == "mine" {
		return m.last, nil
	}
	return m.Mem.Get(ctx, key, rng)
}

type ignoresAfter struct{ *kv.Mem }

func (m ignoresAfter) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	opts.After = ""
	return m.Mem.List(ctx, opts)
}

type afterInclusive struct{ *kv.Mem }

func (m afterInclusive) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if _, err := m.Mem.Get(ctx, opts.After, kv.All()); err == nil && strings.HasPrefix(opts.After, opts.Prefix) {
			if !yield(opts.After, nil) {
				return
			}
		}
		m.Mem.List(ctx, opts)(yield)
	}
}

type prefixIsPath struct{ *kv.Mem }

func (m prefixIsPath) DeletePrefix(ctx context.Context, prefix string) error {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return m.Mem.DeletePrefix(ctx, prefix)
}

type clampsRanges struct{ *kv.Mem }

func (m clampsRanges) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := m.Mem.Get(ctx, key, rng)
	if errors.Is(err, kv.ErrRange) {
		return nil, nil
	}
	return b, err
}

// keyOrder lists directories in the order of keys instead of names.
type keyOrder struct{ *kv.Mem }

func (m keyOrder) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		var entries []kv.DirEntry
		for e, err := range kv.ListDir(ctx, m.Mem, prefix) {
			if err != nil {
				yield(e, err)
				return
			}
			entries = append(entries, e)
		}
		name := func(e kv.DirEntry) string {
			if e.Prefix {
				return e.Name + "/"
			}
			return e.Name
		}
		slices.SortFunc(entries, func(a, b kv.DirEntry) int { return strings.Compare(name(a), name(b)) })
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

type halfDeletes struct{ *kv.Mem }

func (m halfDeletes) DeletePrefix(ctx context.Context, prefix string) error {
	for key, err := range m.Mem.List(ctx, kv.ListOptions{Prefix: prefix}) {
		if err != nil {
			return err
		}
		return m.Mem.Delete(ctx, key)
	}
	return nil
}

type anyKey struct{ *kv.Mem }

func (m anyKey) Set(ctx context.Context, key string, value []byte) error {
	return m.Mem.Set(ctx, strings.Trim(strings.ToValidUTF8(key, "?")+"x", "/\x00"), value)
}

type neverCanceled struct{ *kv.Mem }

func (m neverCanceled) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return m.Mem.List(context.WithoutCancel(ctx), opts)
}

// tornValues writes a value in two halves, and the second one only after
// somebody has read the first: of the keys that WriteConcurrently shares
// between readers and writers, it writes each one torn before their eyes.
// Everywhere else it writes values whole.
type tornValues struct {
	*kv.Mem
	write sync.Mutex // held while the store changes

	mu   sync.Mutex // guards what is below
	cond sync.Cond
	torn string // the key of which there is half a value
}

func newTornValues() *tornValues {
	m := &tornValues{Mem: kv.NewMem()}
	m.cond.L = &m.mu
	return m
}

func (m *tornValues) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.torn == key {
		m.torn = ""
		m.cond.Signal()
	}
	return m.Mem.Get(ctx, key, rng)
}

func (m *tornValues) Set(ctx context.Context, key string, value []byte) error {
	m.write.Lock()
	defer m.write.Unlock()
	if !sharedKey.MatchString(key) {
		return m.Mem.Set(ctx, key, value)
	}
	half := len(value) / 2
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.Mem.Set(ctx, key, value[:half]); err != nil {
		return err
	}
	for m.torn = key; m.torn != ""; {
		m.cond.Wait()
	}
	return m.Mem.Set(ctx, key, value)
}

// sharedKey matches the keys that WriteConcurrently both reads and writes.
var sharedKey = regexp.MustCompile(`^d[0-2]/k[0-4]$`)

func (m *tornValues) Delete(ctx context.Context, key string) error {
	m.write.Lock()
	defer m.write.Unlock()
	return m.Mem.Delete(ctx, key)
}

func (m *tornValues) DeletePrefix(ctx context.Context, prefix string) error {
	m.write.Lock()
	defer m.write.Unlock()
	return m.Mem.DeletePrefix(ctx, prefix)
}
