package codecs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Chains that are sound pass: of every form of metadata, element, and layout.
func TestRun(t *testing.T) {
	for name, c := range map[string]Case{
		"bytes":       {V3: `[{"name":"bytes","configuration":{"endian":"big"}}]`, Type: dtype.NewInt(32), Shape: []int{4, 3}, Fill: []byte{1, 0, 0, 0}},
		"chain":       {V3: `[{"name":"transpose","configuration":{"order":[1,0]}},"bytes","crc32c"]`, Type: dtype.NewUint(8), Shape: []int{5, 7}},
		"no elements": {V3: `["bytes"]`, Type: dtype.NewUint(8), Shape: []int{0, 3}},
		"rank 0":      {V3: `["bytes"]`, Type: dtype.NewUint(8)},
		"v2":          {V2: &codecs.V2{Compressor: json.RawMessage(`{"id":"zlib","level":1}`), Order: "F"}, Type: dtype.NewUint(8), Shape: []int{6, 2}},
		"variable":    {V3: `["vlen-utf8"]`, Type: dtype.NewString(), Shape: []int{3, 4}},
		"sound":       {Registry: broken(fault{}), V3: `["bytes","fake"]`, Type: dtype.NewUint(8), Shape: []int{4, 6}},
	} {
		t.Run(name, func(t *testing.T) { Run(t, c) })
	}
}

// What cannot be parsed or bound is no chain to test.
func TestNewSuite(t *testing.T) {
	for _, c := range []Case{
		{V3: `["unknown"]`, Type: dtype.NewUint(8)},
		{V3: `["bytes"]`, Type: dtype.NewInt(16)},
		{V2: &codecs.V2{Compressor: json.RawMessage(`{"id":"unknown"}`)}, Type: dtype.NewUint(8)},
	} {
		if _, err := newSuite(c, 1); err == nil {
			t.Errorf("%s %v: a suite", c.V3, c.V2)
		}
	}
}

// A codec with a single fault fails the tests for this fault.
func TestBroken(t *testing.T) {
	all := []string{"Box", "Concurrent", "Damage", "Partial", "Print", "RoundTrip"}
	var calls atomic.Int32
	for _, test := range []struct {
		name string
		f    fault
		// fail are the parts that do, says what one of them says.
		fail []string
		says string
	}{
		{"loses a byte", fault{decode: func(dst, src []byte) ([]byte, error) {
			return append(dst, src[:max(0, len(src)-2)]...), nil
		}}, []string{"Box", "Concurrent", "Partial", "RoundTrip"}, "corrupt"},
		{"changes a byte", fault{decode: func(dst, src []byte) ([]byte, error) {
			if src, err := plain(src); err != nil || len(src) == 0 {
				return dst, err
			}
			dst = append(dst, src[:len(src)-1]...)
			dst[len(dst)-1]++
			return dst, nil
		}}, []string{"Box", "Concurrent", "Partial", "RoundTrip"}, "other elements"},
		{"forgets what was there", fault{encode: func(_, src []byte) []byte {
			return summed(nil, src)
		}}, all, "other bytes"},
		{"never the same twice", fault{encode: func(dst, src []byte) []byte {
			dst = summed(dst, src)
			dst[len(dst)-1] ^= byte(calls.Add(1)) << 4
			return dst
		}}, all, "other bytes"},
		{"says too small a size", fault{longer: -1}, all, "EncodedSize"},
		{"prints something else each time", fault{config: func() json.RawMessage {
			return json.RawMessage(fmt.Sprintf(`{"call":%d}`, calls.Add(1)))
		}}, []string{"Print"}, "after it was parsed"},
		{"prints no object", fault{config: func() json.RawMessage {
			return json.RawMessage(`7`)
		}}, []string{"Print"}, "prints the configuration"},
		{"no error of corruption", fault{decode: func(dst, src []byte) ([]byte, error) {
			b, err := plain(src)
			if err != nil {
				return dst, errors.New("bad sum")
			}
			return append(dst, b...), nil
		}}, []string{"Damage"}, "not ErrCorrupt"},
		{"panics for damage", fault{decode: func(dst, src []byte) ([]byte, error) {
			b, err := plain(src)
			if err != nil {
				panic(err)
			}
			return append(dst, b...), nil
		}}, []string{"Damage"}, "panic"},
		{"reads beyond the end", fault{open: func(ctx context.Context, src codecs.Source) error {
			return src.ReadRange(ctx, src.Size(), 1, func([]byte) error { return nil })
		}}, []string{"Box"}, "read of"},
	} {
		got := failures(t, Case{Registry: broken(test.f), V3: `["bytes","fake"]`, Type: dtype.NewUint(8), Shape: []int{4, 6}})
		compare(t, test.name, got, test.fail, test.says)
	}
}

// A codec that writes beside a box, or changes what it was given, is found too.
func TestBrokenBox(t *testing.T) {
	for _, test := range []struct {
		name string
		s    boxStage
		fail []string
		says string
	}{
		{"sound", boxStage{}, nil, ""},
		{"writes beside", boxStage{beside: true}, []string{"Box", "Damage"}, "outside"},
		{"changes its source", boxStage{scribbles: true}, []string{"Box", "Concurrent", "Partial", "RoundTrip"}, "source"},
	} {
		r := codecs.NewRegistry(codecs.Entry{V3: []string{"fake"}, Kind: codecs.ArrayToBytes, Parse: func(codecs.Config) (codecs.Codec, error) {
			return boxCodec{test.s}, nil
		}})
		got := failures(t, Case{Registry: r, V3: `["fake"]`, Type: dtype.NewUint(8), Shape: []int{4, 6}})
		compare(t, test.name, got, test.fail, test.says)
	}
}

func compare(t *testing.T, name string, got map[string][]string, fail []string, says string) {
	t.Helper()
	said := ""
	for part, lines := range got {
		if !slices.Contains(fail, part) {
			t.Errorf("%s: %s failed: %q", name, part, lines[0])
		}
		said += strings.Join(lines, "\n")
	}
	for _, part := range fail {
		if len(got[part]) == 0 {
			t.Errorf("%s: %s passed", name, part)
		}
	}
	if !strings.Contains(said, says) {
		t.Errorf("%s: no failure contains %q", name, says)
	}
}

// failures runs the suite and returns what its parts say that fail.
func failures(t *testing.T, c Case) map[string][]string {
	t.Helper()
	s := must.Get(newSuite(c, 1))(t)
	all := map[string][]string{}
	for _, p := range s.parts() {
		r := new(recorder)
		done := make(chan struct{})
		go func() { // which Fatal ends
			defer close(done)
			defer func() {
				if err := recover(); err != nil {
					r.Errorf("panic: %v", err)
				}
			}()
			p.test(r)
		}()
		<-done
		if len(r.said) > 0 {
			all[p.name] = r.said
		}
	}
	return all
}

// recorder is a test that fails without consequences.
type recorder struct {
	testing.TB // nil: what is missing below panics
	mu         sync.Mutex
	said       []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Errorf("%s", fmt.Sprintln(args...))
	runtime.Goexit()
}

// fault is a bytes-to-bytes codec, named fake, that appends a sum: sound, but for
// what is set.
type fault struct {
	encode func(dst, src []byte) []byte
	decode func(dst, src []byte) ([]byte, error)
	config func() json.RawMessage
	longer int64                                      // more than it says
	open   func(context.Context, codecs.Source) error // before ranges are read
}

func broken(f fault) *codecs.Registry {
	r := builtin.Registry()
	r.Register(codecs.Entry{V3: []string{"fake"}, Kind: codecs.BytesToBytes, Parse: func(codecs.Config) (codecs.Codec, error) { return f, nil }})
	return r
}

func (f fault) Config() json.RawMessage {
	if f.config != nil {
		return f.config()
	}
	return nil
}

func (f fault) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if f.open != nil {
		return rangeStage{f}, in.Longer(1), nil
	}
	return f, in.Longer(1 + f.longer), nil
}

func (f fault) Encode(dst, src []byte) ([]byte, error) {
	if f.encode != nil {
		return f.encode(dst, src), nil
	}
	return summed(dst, src), nil
}

func (f fault) Decode(dst, src []byte) ([]byte, error) {
	if f.decode != nil {
		return f.decode(dst, src)
	}
	b, err := plain(src)
	return append(dst, b...), err
}

// rangeStage reads ranges too.
type rangeStage struct{ fault }

func (s rangeStage) Open(ctx context.Context, src codecs.Source) (codecs.Source, error) {
	if err := s.open(ctx, src); err != nil {
		return nil, err
	}
	var all []byte
	err := src.ReadRange(ctx, 0, src.Size(), func(b []byte) error {
		b, err := plain(b)
		all = bytes.Clone(b)
		return err
	})
	return codecs.Bytes(all), err
}

// summed appends bytes and their sum.
func summed(dst, src []byte) []byte {
	dst = append(dst, src...)
	return append(dst, sum(src))
}

// plain returns the bytes before a sum.
func plain(src []byte) ([]byte, error) {
	n := len(src) - 1
	if n < 0 || sum(src[:n]) != src[n] {
		return nil, codecs.Corruptf("fake", "bad sum of %d bytes", n)
	}
	return src[:n], nil
}

func sum(b []byte) byte {
	s := byte(1)
	for _, x := range b {
		s = s*31 + x
	}
	return s
}

// boxCodec stores elements of one byte as they are.
type boxCodec struct{ s boxStage }

func (boxCodec) Config() json.RawMessage { return nil }

func (c boxCodec) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	c.s.shape = in.Shape
	return c.s, codecs.BytesRep(in.Size, in.Size), nil
}

type boxStage struct {
	shape     []int
	beside    bool // writes outside the box
	scribbles bool // changes what it decodes
}

func (boxStage) Encode(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

func (s boxStage) Decode(dst, src []byte) ([]byte, error) {
	dst = append(dst, src...)
	if s.scribbles {
		clear(src)
	}
	return dst, nil
}

func (s boxStage) DecodeBox(ctx context.Context, src codecs.Source, box codecs.Box, dst codecs.Dst) error {
	return src.ReadRange(ctx, 0, src.Size(), func(b []byte) error {
		if s.beside {
			for i := range dst.Data {
				dst.Data[i]++
			}
		}
		walk(box.Count, func(at []int) {
			from, to := 0, dst.Offset
			for d, n := range s.shape {
				from = from*n + box.Start[d] + at[d]
				to += at[d] * dst.Strides[d]
			}
			dst.Data[to] = b[from]
		})
		return nil
	})
}
