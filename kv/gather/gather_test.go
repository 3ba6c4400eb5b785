package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

var bg = context.Background()

// store is some files that note how they are read.
type store struct {
	files [][]byte
	// along says that opening a file brings its bytes along.
	along bool
	// broken, if not nil, fails opening and reading.
	broken func(file int, op string) error

	mu    sync.Mutex
	asked []string
	got   map[int][]byte // by want
	errs  map[int]error
}

type file struct {
	kv.Bytes
	s *store
	i int
}

func (f file) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	f.s.note("read %d %v", f.i, rng)
	if f.s.broken != nil {
		if err := f.s.broken(f.i, "read"); err != nil {
			return err
		}
	}
	return f.Bytes.View(ctx, rng, fn)
}

func (s *store) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
}

func (s *store) Open(ctx context.Context, i int, rng kv.Range, limit int64, stale kv.Value) (kv.Value, []byte, error) {
	if s.broken != nil {
		if err := s.broken(i, "open"); err != nil {
			return nil, nil, err
		}
	}
	f := file{s.files[i], s, i}
	if !s.along {
		return f, nil, nil
	}
	s.note("open %d %v", i, rng)
	off, n, _ := rng.Bounds()
	if n < 0 {
		n = f.Size()
	}
	if limit > 0 && f.Size() > limit || off >= f.Size() {
		return f, nil, nil
	}
	return f, f.Bytes[off:min(off+n, f.Size())], nil
}

func (s *store) Take(_ context.Context, p Part, f kv.Value, b []byte, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got == nil {
		s.got, s.errs = map[int][]byte{}, map[int]error{}
	}
	if _, twice := s.got[p.Want]; twice {
		return fmt.Errorf("part %d came twice", p.Want)
	}
	s.got[p.Want], s.errs[p.Want] = bytes.Clone(b), err
	if f == nil && err == nil {
		return fmt.Errorf("part %d has no file", p.Want)
	}
	return nil
}

func TestRead(t *testing.T) {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for _, test := range []struct {
		name  string
		parts []Part
		want  []string
	}{
		{"near ones, in any order", []Part{{Off: 30, N: 10}, {Off: 0, N: 10}, {Off: 15, N: 10}}, []string{"open 0 [0, +40)"}},
		{"far ones", []Part{{Off: 0, N: 10}, {Off: 21, N: 10}}, []string{"open 0 [0, +10)", "open 0 [21, +10)"}},
		{"at the gap", []Part{{Off: 0, N: 10}, {Off: 20, N: 10}}, []string{"open 0 [0, +30)"}},
		{"as long as allowed", []Part{{Off: 0, N: 50}, {Off: 50, N: 50}, {Off: 100, N: 1}}, []string{"open 0 [0, +100)", "open 0 [100, +1)"}},
		{"longer than allowed alone", []Part{{Off: 0, N: 300}, {Off: 10, N: 20}, {Off: 290, N: 20}}, []string{"open 0 [0, +300)", "open 0 [290, +20)"}},
		{"the same twice", []Part{{Off: 5, N: 5}, {Off: 5, N: 5}}, []string{"open 0 [5, +5)"}},
		{"two files", []Part{{Off: 5, N: 5}, {File: 1, Off: 10, N: 5}, {Off: 10, N: 5}}, []string{"open 0 [5, +10)", "open 1 [10, +5)"}},
		{"a whole file twice", []Part{{N: -1}, {N: -1}, {Off: 0, N: 5}}, []string{"open 0 [0, +5)", "open 0 [0, end)"}},
		{"a file that is too long", []Part{{N: -1, Limit: 999}}, []string{"open 0 [0, end)"}},
		{"no bytes", []Part{{Off: 5}, {Off: 5}, {Off: 5, N: 1}}, []string{"open 0 [5, +0)", "open 0 [5, +1)"}},
		{"beyond the end", []Part{{Off: 995, N: 5}, {Off: 998, N: 5}, {Off: 2000, N: 5}}, []string{"open 0 [2000, +5)", "open 0 [995, +8)"}},
	} {
		for _, along := range []bool{true, false} {
			s := &store{files: [][]byte{data, data}, along: along}
			parts := slices.Clone(test.parts)
			for i := range parts {
				parts[i].Want = i
			}
			if err := Read(bg, parts, s, Options{Gap: 10, Most: 100, Parallel: 3, Memory: NewMemory(100)}); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			slices.Sort(s.asked)
			if along && !slices.Equal(s.asked, test.want) {
				t.Errorf("%s: %q, want %q", test.name, s.asked, test.want)
			}
			if len(s.asked) > len(test.want) {
				t.Errorf("%s: %q", test.name, s.asked)
			}
			for i, p := range test.parts {
				want, bad := []byte(nil), false
				switch {
				case p.N < 0 && p.Limit == 0:
					want = data
				case p.N >= 0 && p.Off+p.N > int64(len(data)):
					bad = true
				case p.N > 0:
					want = data[p.Off : p.Off+p.N]
				}
				if got, ok := s.got[i]; !ok || !bytes.Equal(got, want) || bad != errors.Is(s.errs[i], kv.ErrRange) || bad != (s.errs[i] != nil) {
					t.Errorf("%s: part %d is %d bytes, %v", test.name, i, len(got), s.errs[i])
				}
			}
		}
	}
}

// TestReadModel reads random parts of files.
func TestReadModel(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		s := &store{along: rnd.IntN(2) == 0}
		for range 1 + rnd.IntN(4) {
			b := make([]byte, rnd.IntN(3000))
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			s.files = append(s.files, b)
		}
		parts := make([]Part, rnd.IntN(100))
		for i := range parts {
			p := Part{File: rnd.IntN(len(s.files)), Want: i, Off: rnd.Int64N(3000), N: rnd.Int64N(200)}
			if rnd.IntN(20) == 0 {
				p.Off, p.N = 0, -1
			}
			parts[i] = p
		}
		wants := slices.Clone(parts)
		memory := NewMemory(300)
		must.Do(t, Read(bg, parts, s, Options{Gap: rnd.Int64N(100) - 20, Most: rnd.Int64N(500), Parallel: 1 + rnd.IntN(4), Memory: memory}))
		if !memory.try(300) {
			t.Fatal("bytes were not given back")
		}
		for _, p := range wants {
			b := s.files[p.File]
			inside := p.N < 0 || p.Off+p.N <= int64(len(b))
			if inside && p.N >= 0 {
				b = b[p.Off : p.Off+p.N]
			}
			if inside != (s.errs[p.Want] == nil) || inside && !bytes.Equal(s.got[p.Want], b) {
				t.Fatalf("%+v: %d bytes, %v", p, len(s.got[p.Want]), s.errs[p.Want])
			}
		}
	}
}

// TestReadFaults fails opening and reading.
func TestReadFaults(t *testing.T) {
	parts := func() []Part { return []Part{{Off: 0, N: 5}, {Off: 5, N: 5, Want: 1}} }
	o := Options{Gap: 10, Most: 100, Parallel: 3, Memory: NewMemory(100)}
	boom := errors.New("boom")
	for _, op := range []string{"open", "read"} {
		s := &store{files: [][]byte{make([]byte, 10)}, broken: func(_ int, at string) error {
			if at == op {
				return boom
			}
			return nil
		}}
		if err := Read(bg, parts(), s, o); err != nil || len(s.got) != 1 || !errors.Is(s.errs[0], boom) {
			t.Errorf("%s: %v, %v", op, err, s.errs)
		}
	}
	// A changed file is opened once more.
	for tries := range 3 {
		n := 0
		s := &store{files: [][]byte{make([]byte, 10)}, broken: func(_ int, at string) error {
			if at == "read" {
				if n++; n <= tries {
					return kv.ErrChanged
				}
			}
			return nil
		}}
		if err := Read(bg, parts(), s, o); err != nil || (tries < 2) != (len(s.got) == 2) || errors.Is(s.errs[0], kv.ErrChanged) != (tries == 2) {
			t.Errorf("%d changes: %v, %v", tries, err, s.errs)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := Read(ctx, parts(), &store{files: [][]byte{make([]byte, 10)}}, o); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestMemory holds no more than the bound, but for one alone.
func TestMemory(t *testing.T) {
	m := NewMemory(10)
	var mu sync.Mutex
	var held, most int64
	err := Each(bg, 8, 200, func(_ context.Context, i int) error {
		n := int64(i % 13)
		if err := m.Take(bg, n); err != nil {
			return err
		}
		mu.Lock()
		held += n
		if held > 10 && held != n {
			t.Errorf("%d bytes held", held)
		}
		most = max(most, held)
		held -= n
		mu.Unlock()
		m.Give(n)
		return nil
	})
	if err != nil || most < 10 || !m.try(10) {
		t.Errorf("%v, at most %d", err, most)
	}
}

// A wait for memory ends with its context.
func TestMemoryStopped(t *testing.T) {
	m := NewMemory(10)
	if err := m.Take(bg, 15); err != nil { // alone
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bg)
	waiting := make(chan error)
	go func() { waiting <- m.Take(ctx, 1) }()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.Give(15)
	if !m.try(10) {
		t.Error("bytes are left")
	}
}

func TestRows(t *testing.T) {
	parts := []Part{{File: 1, Off: 5}, {File: 0, Off: 9}, {File: 1, Off: 1}, {File: 1, Off: 3}}
	rows := Rows(parts, 2)
	if len(rows) != 3 || rows[0][0].Off != 9 || rows[1][0].Off != 1 || rows[1][1].Off != 3 || rows[2][0].Off != 5 {
		t.Errorf("%v", rows)
	}
	if Rows(nil, 2) != nil {
		t.Error("rows of nothing")
	}
}
