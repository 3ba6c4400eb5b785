package refs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// TestViewChangedFile has a file replaced and removed while a view is open.
func TestViewChangedFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	must.Do(t, os.WriteFile(file, []byte("first content"), 0o666))
	view := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(`{"part": ["f", 6, 3], "whole": ["f"], "end": ["f", 10, 3]}`),
		&refs.Options{Open: openLocal(t), Rules: refs.Rules{Base: filepath.ToSlash(dir)}}))(t)
	get := func(key string) string {
		t.Helper()
		b, err := kv.Get(t.Context(), view, key)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return string(b)
	}
	if got := get("part") + get("whole") + get("end"); got != "confirst contentent" {
		t.Errorf("at first %q", got)
	}
	old := must.Get(view.Locate(t.Context(), "part"))(t)
	if v, ok := old.(kv.Validator); !ok || v.Validator() == "" {
		t.Error("the value has no validator")
	}
	// Another file takes the place, as programs that write safely do it.
	other := filepath.Join(dir, "other")
	must.Do(t, os.WriteFile(other, []byte("second and longer"), 0o666))
	must.Do(t, os.Rename(other, file))
	if b, err := kv.ReadValue(t.Context(), old, kv.All()); !errors.Is(err, kv.ErrChanged) && string(b) != "con" {
		t.Errorf("what was located is %q, %v", b, err)
	}
	if got := get("whole") + get("part"); got != "second and longer an" {
		t.Errorf("then %q", got)
	}
	must.Do(t, os.Remove(file))
	if b, err := kv.Get(t.Context(), view, "whole"); err == nil && string(b) != "second and longer" || err != nil && !errors.Is(err, refs.ErrUnreachable) {
		t.Errorf("without the file: %q, %v", b, err)
	}
}

// memoryFiles opens files of a map.
func memoryFiles(files map[string]string) refs.Opener {
	return func(_ context.Context, root, path string) (kv.Value, error) {
		b, ok := files[root+path]
		if !ok {
			return nil, kv.ErrNotFound
		}
		return kv.Bytes(b), nil
	}
}

func TestViewManyFiles(t *testing.T) {
	const n = 5000 // more than stay located
	files := map[string]string{}
	var set bytes.Buffer
	set.WriteString(`{"gone": ["memory://h/gone"], "other": ["https://h/x"]`)
	for i := range n {
		files[fmt.Sprintf("memory://h/%d", i)] = fmt.Sprint(i)
		fmt.Fprintf(&set, `, "k%d": ["memory://h/%d"]`, i, i)
	}
	set.WriteString("}")
	view := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(set.Bytes()), &refs.Options{Open: memoryFiles(files), Rules: refs.Rules{Allow: []string{"memory://h"}}}))(t)
	for round := range 2 {
		for i := range n {
			if b, err := kv.Get(t.Context(), view, fmt.Sprintf("k%d", i)); err != nil || string(b) != fmt.Sprint(i) {
				t.Fatalf("round %d, key %d: %q, %v", round, i, b, err)
			}
		}
	}
	for key, want := range map[string]error{"gone": refs.ErrUnreachable, "other": refs.ErrForbidden, "none": kv.ErrNotFound} {
		var ke *refs.KeyError
		if _, err := kv.Get(t.Context(), view, key); !errors.Is(err, want) || want != kv.ErrNotFound && (errors.Is(err, kv.ErrNotFound) || !errors.As(err, &ke) || ke.Key != key) {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
	closed := must.Get(refs.OpenJSON(t.Context(), kv.Bytes(set.Bytes()), &refs.Options{Rules: refs.Rules{Allow: []string{"memory://h"}}}))(t)
	if _, err := kv.Get(t.Context(), closed, "k1"); !errors.Is(err, refs.ErrForbidden) {
		t.Errorf("without an opener: %v", err)
	}
}

func TestTableLimit(t *testing.T) {
	set := `{"a": ["u"], "b": "` + strings.Repeat("x", 1000) + `"}`
	if _, err := refs.OpenJSON(t.Context(), kv.Bytes(set), &refs.Options{MaxTable: 500}); !errors.Is(err, refs.ErrLimit) {
		t.Errorf("%v", err)
	}
}

// blocked is a store whose first read of a partition ends with its context.
type blocked struct {
	*kv.Mem
	once    sync.Once
	started chan struct{}
}

func (b *blocked) Locate(ctx context.Context, key string) (v kv.Value, err error) {
	if strings.HasSuffix(key, ".parq") {
		b.once.Do(func() {
			close(b.started)
			<-ctx.Done()
			err = ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	return b.Mem.Locate(ctx, key)
}

// TestPartitionGivenUp has one caller give up a read that others wait for.
func TestPartitionGivenUp(t *testing.T) {
	dir := &blocked{Mem: kv.NewMem(), started: make(chan struct{})}
	must.Do(t, refs.WriteParquet(t.Context(), dir.Mem, sequence([]refs.Entry{text("a/.zarray", `{"shape": [9], "chunks": [1]}`), ranged("a/3", 1, 2)}, nil), nil))
	view := must.Get(refs.OpenParquet(t.Context(), dir, nil))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := view.Lookup(ctx, "a/3"); !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled reader got %v", err)
		}
	})
	<-dir.started
	for range 8 {
		all.Go(func() {
			if ref, err := view.Lookup(t.Context(), "a/3"); err != nil || ref.Length != 2 {
				t.Errorf("the waiting reader got %v, %v", ref, err)
			}
		})
	}
	cancel()
	all.Wait()
}

// TestParquetConcurrent looks keys up from many goroutines, with a cache that
// holds a part of the partitions.
func TestParquetConcurrent(t *testing.T) {
	set := randomSet(rand.New(rand.NewPCG(3, 4)))
	dir := kv.NewMem()
	must.Do(t, refs.WriteParquet(t.Context(), dir, sequence(set, nil), &refs.ParquetOptions{RecordSize: 20}))
	view := must.Get(refs.OpenParquet(t.Context(), dir, &refs.Options{CacheBytes: 4 << 10}))(t)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(5, uint64(g)))
			for range 300 {
				e := &set[rnd.IntN(len(set))]
				if ref, err := view.Lookup(t.Context(), e.Key); err != nil || !sameReference(ref, e.Reference) {
					t.Errorf("%s: %v, %v", e.Key, ref, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// readOnly is a store that cannot be listed.
type readOnly struct{ kv.Reader }

func TestParquetWithoutList(t *testing.T) {
	set := randomSet(rand.New(rand.NewPCG(6, 7)))
	dir := kv.NewMem()
	must.Do(t, refs.WriteParquet(t.Context(), dir, sequence(set, nil), &refs.ParquetOptions{RecordSize: 5}))
	want := collect(t, refs.ReadParquet(t.Context(), dir, nil))
	got := collect(t, refs.ReadParquet(t.Context(), readOnly{dir}, nil))
	if len(got) != len(set) || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d entries, want %d", len(got), len(set))
	}
	view := must.Get(refs.OpenParquet(t.Context(), readOnly{dir}, nil))(t)
	if keys := list(t, view, kv.ListOptions{}); len(keys) != len(set) {
		t.Errorf("%d keys, want %d", len(keys), len(set))
	}
	huge := kv.NewMem()
	must.Do(t, huge.Set(t.Context(), ".zmetadata", []byte(`{"metadata": {"a/.zarray": {"shape": [1000000000], "chunks": [1]}}, "record_size": 10}`)))
	for _, err := range refs.ReadParquet(t.Context(), huge, nil) {
		if err != nil {
			t.Errorf("listed: %v", err)
		}
	}
	var last error
	for _, err := range refs.ReadParquet(t.Context(), readOnly{huge}, nil) {
		last = err
	}
	if !errors.Is(last, refs.ErrLimit) {
		t.Errorf("looked for one by one: %v", last)
	}
}

// TestAwkwardURLs writes URLs that mean something to JSON and templates.
func TestAwkwardURLs(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	words := []string{"{{", "}}", "{%", "%}", "{#", "{", "%", " ", "é", "漢", `"`, `\`, "'", "\n", "\r", "\t", "\x7f", "base64:", "/", "a", "%05d", "s3://b/c/"}
	word := func() string {
		var b strings.Builder
		for range 1 + rnd.IntN(6) {
			b.WriteString(words[rnd.IntN(len(words))])
		}
		return b.String()
	}
	for range 40 {
		var set []refs.Entry
		for i := range 20 {
			ref := refs.Reference{URL: word(), Offset: rnd.Int64N(9), Length: rnd.Int64N(9)}
			switch i % 4 {
			case 0:
				ref.Offset, ref.Length = 0, refs.WholeFile
			case 1:
				ref = refs.Reference{Data: []byte(word()), Form: refs.Form(rnd.IntN(3))}
			}
			set = append(set, refs.Entry{Key: fmt.Sprintf("%02d", i), Reference: ref})
		}
		for version := range 2 {
			var buf bytes.Buffer
			must.Do(t, refs.WriteJSON(&buf, sequence(set, nil), &refs.WriteOptions{Version: version}))
			for i, e := range collect(t, refs.ReadJSON(t.Context(), kv.Bytes(buf.Bytes()), nil)) {
				if e.Key != set[i].Key || !sameReference(e.Reference, set[i].Reference) {
					t.Fatalf("version %d: %v, want %v", version, e, set[i])
				}
			}
		}
	}
}
