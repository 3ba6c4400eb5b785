package zipkv

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// farArchive is an archive of which reading costs something. It notes how it is
// read.
type farArchive struct {
	kv.Bytes
	gap, most int64
	fail      error

	mu    sync.Mutex
	asked []string
}

func (f *farArchive) Spacing() (gap, most int64) { return f.gap, f.most }

func (f *farArchive) ID() kv.ID { return kv.ID{1} }

func (f *farArchive) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(f.Size())
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.asked = append(f.asked, fmt.Sprintf("%d+%d", off, n))
	f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	return f.Bytes.View(ctx, rng, func(b []byte) error {
		b = bytes.Clone(b)
		defer clear(b) // not valid any more when fn has returned
		return fn(b)
	})
}

// reads returns how the archive was read since the last time, sorted.
func (f *farArchive) reads() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	slices.Sort(asked)
	return asked
}

func openFar(t *testing.T, f *farArchive) *Reader {
	t.Helper()
	r := must.Get(Open(ctx, f))(t)
	return r
}

// numberedMembers are n members of size bytes, in the order of their numbers.
func numberedMembers(n, size int) map[string][]byte {
	content := map[string][]byte{}
	for i := range n {
		b := make([]byte, size)
		for k := range b {
			b[k] = byte(i*31 + k*k)
		}
		content[fmt.Sprintf("c/%03d", i)] = b
	}
	return content
}

// gathered reads wants and compares them with what they must be.
func gathered(t *testing.T, r *Reader, content map[string][]byte, wants []kv.Want) {
	t.Helper()
	var mu sync.Mutex
	seen := make([]int, len(wants))
	must.Do(t, r.Gather(ctx, wants, kv.Gathering{Take: func(ctx context.Context, i int, v kv.Value) error {
		mu.Lock()
		seen[i]++
		mu.Unlock()
		want, ok := content[wants[i].Key]
		if v == nil || !ok {
			if ok || v != nil {
				return fmt.Errorf("%q: there %v, found %v", wants[i].Key, ok, v != nil)
			}
			return nil
		}
		off, n, err := wants[i].Range.Resolve(int64(len(want)))
		if err != nil {
			return err
		}
		b, err := kv.ReadValue(ctx, v, wants[i].Range)
		if err == nil && !bytes.Equal(b, want[off:off+n]) {
			err = fmt.Errorf("%q: other bytes", wants[i].Key)
		}
		return err
	}}))
	for i, n := range seen {
		if n != 1 {
			t.Errorf("%q was taken %d times", wants[i].Key, n)
		}
	}
}

// TestGatherRequests counts the requests to an archive on a server.
func TestGatherRequests(t *testing.T) {
	content := numberedMembers(200, 500)
	var all, some, parts []kv.Want
	for i := range 200 {
		key := fmt.Sprintf("c/%03d", 199-i)
		all = append(all, kv.Want{Key: key})
		if i%50 == 0 {
			some = append(some, kv.Want{Key: key})
		}
		parts = append(parts, kv.Want{Key: key, Range: kv.Last(10)})
	}
	for name, test := range map[string]struct {
		archive           []byte
		open, all         int
		some, parts, none int
	}{
		// 105 KB of members, and 35 KB, of which up to 50 KB are read at once.
		"stored":   {write(t, content), 1, 3, 4, 200, 0},
		"deflated": {writeStd(t, content, zip.Deflate), 1, 1, 4, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &farArchive{Bytes: test.archive, gap: 100, most: 50_000}
			r := openFar(t, f)
			count := func(what string, want int) {
				t.Helper()
				if got := f.reads(); len(got) != want {
					t.Errorf("%s: read %q, want %d times", what, got, want)
				}
			}
			count("open", test.open)
			gathered(t, r, content, all)
			count("all", test.all)
			gathered(t, r, content, some)
			count("some", test.some)
			gathered(t, r, content, parts)
			count("parts", test.parts)
			gathered(t, r, content, []kv.Want{{Key: "missing"}, {Key: "c"}})
			count("missing", test.none)

			// Ends of members of which nothing is known yet: the headers first.
			f = &farArchive{Bytes: test.archive, gap: 1 << 20, most: 1 << 20}
			r = openFar(t, f)
			f.reads()
			gathered(t, r, content, parts)
			if got := f.reads(); len(got) > 2 {
				t.Errorf("parts: read %q", got)
			}
		})
	}
}

// TestGatherHas reads nothing that somebody has, nor what is too long.
func TestGatherHas(t *testing.T) {
	content := numberedMembers(4, 500)
	f := &farArchive{Bytes: write(t, content), gap: 100, most: 50_000}
	r := openFar(t, f)
	f.reads()
	wants := []kv.Want{{Key: "c/000"}, {Key: "c/001", Limit: 499}, {Key: "c/002", Limit: 500}, {Key: "c/003", Range: kv.Span(5, 0)}}
	sizes := make([]int64, len(wants))
	err := r.Gather(ctx, wants, kv.Gathering{
		Has: func(i int, v kv.Value) bool { return i == 0 && v.ID() != kv.ID{} },
		Take: func(_ context.Context, i int, v kv.Value) error {
			sizes[i] = v.Size()
			return nil
		},
	})
	if got := f.reads(); err != nil || len(got) != 1 || !slices.Equal(sizes, []int64{500, 500, 500, 500}) {
		t.Errorf("read %q, sizes %d, %v", got, sizes, err)
	}
}

// TestGatherLongHeaders reads members whose local headers are longer than is
// thought.
func TestGatherLongHeaders(t *testing.T) {
	content := numberedMembers(20, 300)
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, key := range []string{"c/000", "c/007", "c/013"} {
		w, err := z.CreateRaw(&zip.FileHeader{
			Name: key, Method: zip.Store, CRC32: crc32.ChecksumIEEE(content[key]), CompressedSize64: 300, UncompressedSize64: 300,
			Extra: append([]byte{0xfe, 0xca, 0x88, 0x13}, make([]byte, 5000)...),
		})
		if err == nil {
			_, err = w.Write(content[key])
		}
		must.Do(t, err)
	}
	must.Do(t, z.Close())
	r := openFar(t, &farArchive{Bytes: out.Bytes(), gap: 10, most: 1000})
	gathered(t, r, content, []kv.Want{{Key: "c/013"}, {Key: "c/000", Range: kv.Span(7, 20)}, {Key: "c/007"}})
}

// TestGatherFails ends with what reading the archive gives.
func TestGatherFails(t *testing.T) {
	content := numberedMembers(40, 500)
	b := write(t, content)
	wants := []kv.Want{{Key: "c/003"}, {Key: "c/030", Range: kv.Last(5)}}
	none := kv.Gathering{Take: func(context.Context, int, kv.Value) error { return nil }}
	for _, err := range []error{errors.New("mine"), kv.ErrChanged} {
		f := &farArchive{Bytes: b, gap: 10, most: 1000}
		r := openFar(t, f)
		f.fail = err
		if got := r.Gather(ctx, wants, none); !errors.Is(got, err) {
			t.Errorf("%v, want %v", got, err)
		}
	}
	damaged := bytes.Clone(b)
	at := bytes.Index(damaged, []byte("c/030"))
	damaged[at-lenLocal] ^= 1
	r := openFar(t, &farArchive{Bytes: damaged, gap: 10, most: 1000})
	if err := r.Gather(ctx, wants, none); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a damaged header: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := r.Gather(ended, wants[:1], none); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := r.Gather(ctx, []kv.Want{{Key: "../x"}}, none); !errors.Is(err, kv.ErrInvalidKey) {
		t.Errorf("an invalid key: %v", err)
	}
}
