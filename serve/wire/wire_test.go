package wire

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// pair returns two ends of a connection on a Unix socket.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire")
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := must.Get(net.Listen("unix", filepath.Join(dir, "s")))(t)
	defer l.Close()
	if a, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// Frames of many sizes arrive as they were sent, with their descriptors, however
// the stream is cut.
func TestFrames(t *testing.T) {
	a, b := pair(t)
	from, to := NewConn(a, Limits{}, time.Minute), NewConn(b, Limits{}, 0)
	pattern := func(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }
	sizes := []int{0, 1, 15, 16, 1000, bufferSize - headerSize, bufferSize, bufferSize + 1, 3 * bufferSize, joined - headerSize - 300, joined, wholeBody + 5}
	go func() {
		for i, n := range sizes {
			f := &Frame{ID: uint32(i), Op: OpValue, Flags: FlagReply, Meta: pattern(min(n, 300)), Body: pattern(n)}
			if i%2 == 1 {
				f.Pass = []Descriptor{os.Stdin, os.Stdout}
			}
			if err := from.Send(f); err != nil {
				t.Error(err)
			}
		}
		a.Close()
	}()
	for i, n := range sizes {
		f := must.Get(to.Receive())(t)
		if f.ID != uint32(i) || f.Op != OpValue || f.Flags != FlagReply || !bytes.Equal(f.Meta, pattern(min(n, 300))) || !bytes.Equal(f.Body, pattern(n)) {
			t.Errorf("frame %d of %d bytes has changed: %d, %d, %v", i, n, len(f.Meta), len(f.Body), f.Op)
		}
		if want := i % 2 * 2; len(f.Files) != want {
			t.Errorf("frame %d: %d files, want %d", i, len(f.Files), want)
		}
		for k, file := range f.Files {
			got, err := file.Stat()
			want, _ := []*os.File{os.Stdin, os.Stdout}[k].Stat()
			if err != nil || !os.SameFile(got, want) {
				t.Errorf("frame %d: file %d is another one: %v", i, k, err)
			}
		}
		f.Close()
	}
	if _, err := to.Receive(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// What is too long is refused by its header, before its parts are read.
func TestFramesRefused(t *testing.T) {
	limits := Limits{Meta: 100, Body: 1000}
	for name, test := range map[string]struct {
		bytes []byte
		want  string
	}{
		"meta":      {(&Header{Op: OpValue, Meta: 101}).Append(nil), "value with a meta of 101 bytes, where 100 are allowed"},
		"body":      {(&Header{Op: OpSet, Body: 1 << 31}).Append(nil), "set with a body of 2147483648 bytes"},
		"no op":     {make([]byte, headerSize), "is that a client of zarrdb"},
		"http":      {[]byte("GET / HTTP/1.1\r\nHost: localhost\r\n"), "is that a client of zarrdb"},
		"files":     {(&Header{Op: OpValue, Files: 5}).Append(nil), "5 descriptors with one frame"},
		"absent":    {(&Header{Op: OpValue, Files: 1}).Append(nil), "came with 0 descriptors, where 1 were announced"},
		"torn head": {(&Header{Op: OpValue}).Append(nil)[:7], "unexpected EOF"},
		"torn meta": {append((&Header{Op: OpValue, Meta: 50}).Append(nil), 1, 2), "unexpected EOF"},
		"torn body": {append((&Header{Op: OpValue, Body: 50}).Append(nil), 1, 2), "unexpected EOF"},
	} {
		a, b := pair(t)
		must.Get(a.Write(test.bytes))(t)
		a.Close()
		_, err := NewConn(b, limits, 0).Receive()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if torn := errors.Is(err, io.ErrUnexpectedEOF); torn == errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, b := pair(t)
	c := NewConn(a, limits, 0)
	var long *TooLongError
	if err := c.Send(&Frame{Op: OpSet, Body: make([]byte, 1001)}); !errors.As(err, &long) {
		t.Error(err)
	}
	if err := c.Send(&Frame{ID: 7, Op: OpSet, Body: make([]byte, 1000)}); err != nil {
		t.Error(err)
	}
	if f, err := NewConn(b, limits, 0).Receive(); err != nil || f.ID != 7 {
		t.Error(f, err)
	}
}

// A Send to a peer that does not read times out.
func TestSlowPeer(t *testing.T) {
	a, _ := pair(t)
	c := NewConn(a, Limits{}, 10*time.Millisecond)
	for {
		err := c.Send(&Frame{Op: OpValue, Body: make([]byte, 1<<20)})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		must.Do(t, err)
	}
}

// Descriptors that no frame asks for are closed.
func TestFilesWithoutFrame(t *testing.T) {
	a, b := pair(t)
	c := NewConn(a, Limits{}, 0)
	must.Do(t, c.Send(&Frame{Op: OpValue, Meta: []byte("meta"), Pass: []Descriptor{os.Stdin}}))
	a.Close()
	to := NewConn(b, Limits{Meta: 3}, 0)
	if _, err := to.Receive(); !errors.Is(err, ErrProtocol) || len(to.files) != 1 {
		t.Fatalf("%v, %d files", err, len(to.files))
	}
	file := to.files[0]
	to.Release()
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is open: %v", err)
	}
}

// hot are the binary metas.
var hot = []struct {
	name  string
	value interface{ Append([]byte) []byte }
	parse func([]byte) (interface{ Append([]byte) []byte }, error)
}{
	{"header", &Header{ID: 1, Op: OpValue, Files: 2, Flags: FlagReport, Meta: 3, Body: 4}, func(b []byte) (interface{ Append([]byte) []byte }, error) {
		v, err := parseHeader(b, Limits{})
		return &v, err
	}},
	{"stat", &Stat{View: 1, Key: "a/c/0"}, func(b []byte) (interface{ Append([]byte) []byte }, error) {
		v, err := ParseStat(b)
		return &v, err
	}},
	{"set", &Set{View: 1, Expect: ExpectID, ID: [IDSize]byte{1, 2}, Key: "a/c/0"}, func(b []byte) (interface{ Append([]byte) []byte }, error) {
		v, err := ParseSet(b)
		return &v, err
	}},
	{"own pages", &OwnPages{View: 3, Names: [][IDSize]byte{{1}, {2, 3}}}, func(b []byte) (interface{ Append([]byte) []byte }, error) {
		v, err := ParseOwnPages(b)
		return &v, err
	}},
	{"stage", &Stage{View: 3, Sizes: PageSizes([][]byte{{1}, {2, 3}})}, func(b []byte) (interface{ Append([]byte) []byte }, error) {
		v, err := ParseStage(b)
		return &v, err
	}},
	{"pages", &Pages{Names: [][IDSize]byte{{1}, {2, 3}}}, func(b []byte) (interface{ Append([]byte) []byte }, error) {
		v, err := ParsePages(b)
		return &v, err
	}},
}

func TestHot(t *testing.T) {
	for _, h := range hot {
		b := h.value.Append(nil)
		got, err := h.parse(b)
		if err != nil || !reflect.DeepEqual(got, h.value) {
			t.Errorf("%s: %+v, %v, want %+v", h.name, got, err, h.value)
		}
		if _, err := h.parse(b[:3]); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s cut: %v", h.name, err)
		}
	}
	for op := OpHello; op < numOps; op++ {
		if op.String() == "" {
			t.Errorf("operation %d has no name", op)
		}
	}
}

// FuzzMetas: what is parsed prints as it was.
func FuzzMetas(f *testing.F) {
	for i, h := range hot {
		f.Add(uint8(i), h.value.Append(nil))
	}
	f.Add(uint8(len(hot)), []byte(`{"protocol":1,"version":"x"}`))
	f.Add(uint8(len(hot)+2), AppendRecord(AppendRecord(nil, []byte("k"), []byte("value")), nil, nil))
	f.Add(uint8(len(hot)+2), []byte{1, 'k', 9})
	f.Add(uint8(len(hot)+3), append([]byte{8}, append(PageSizes([][]byte{{1}, {2, 3}}), 1, 2, 3)...))
	f.Add(uint8(len(hot)+3), []byte{4, 255, 255, 255, 255})
	f.Add(uint8(len(hot)+4), AppendInBlock(nil, 3, 4096, []byte("meta")))
	f.Add(uint8(len(hot)+4), []byte{3, 0, 0})
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		if int(which) == len(hot)+4 {
			block, n, meta, err := ParseInBlock(b)
			if err != nil && !errors.Is(err, ErrProtocol) || err == nil && !bytes.Equal(AppendInBlock(nil, block, n, meta), b) {
				t.Errorf("%x was read as block %d, %d bytes, meta %x: %v", b, block, n, meta, err)
			}
			return
		}
		if int(which) == len(hot)+2 {
			var out []byte
			err := SplitRecords(b, func(key, value []byte) { out = AppendRecord(out, key, value) })
			if err != nil && !errors.Is(err, ErrProtocol) || len(out) > len(b) {
				t.Errorf("%q: %d bytes, %v", b, len(out), err)
			}
			return
		}
		if int(which) == len(hot)+3 {
			meta := min(len(b), 1+int(append(b, 0)[0])) // behind the first byte, which has the length
			pages, err := SplitPages(b[min(len(b), 1):meta], b[meta:])
			if err != nil && !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
			if err == nil && !bytes.Equal(append(PageSizes(pages), bytes.Join(pages, nil)...), b[min(len(b), 1):]) {
				t.Errorf("%q was read as %q", b, pages)
			}
			return
		}
		if int(which) >= len(hot) {
			var hello Hello
			if err := ParseJSON(OpHello, b, &hello); err != nil && !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
			return
		}
		v, err := hot[which].parse(b)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
			return
		}
		again := v.Append(nil)
		if !bytes.HasPrefix(b, again) || which != 0 && len(again) != len(b) {
			t.Errorf("%s: %x prints as %x", hot[which].name, b, again)
		}
	})
}

// FuzzFrames: a stream gives frames that print as they were, or an error.
func FuzzFrames(f *testing.F) {
	var seed []byte
	for i := range 3 {
		meta, body := bytes.Repeat([]byte{byte(i)}, i), bytes.Repeat([]byte{9}, 10*i)
		seed = (&Header{ID: uint32(i), Op: OpValue, Meta: uint32(len(meta)), Body: uint32(len(body))}).Append(seed)
		seed = append(append(seed, meta...), body...)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		c := NewConn(&stream{in: bytes.NewReader(b)}, Limits{Meta: 1 << 10, Body: 1 << 20}, 0)
		out := &stream{}
		to := NewConn(out, Limits{}, 0)
		for {
			f, err := c.Receive()
			if err != nil {
				break
			}
			must.Do(t, to.Send(f))
		}
		if !bytes.HasPrefix(b, out.out.Bytes()) {
			t.Errorf("%x was read as %x", b, out.out.Bytes())
		}
	})
}

// stream is a connection in memory.
type stream struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *stream) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *stream) Write(p []byte) (int, error) { return s.out.Write(p) }

// docs/protocol.md has every operation.
func TestProtocolDocument(t *testing.T) {
	b := must.Get(os.ReadFile("../../docs/protocol.md"))(t)
	for op := OpHello; op < numOps; op++ {
		if opNames[op] == "" {
			continue // it was in use once
		}
		if row := fmt.Sprintf("| %d | `%v` |", op, op); !strings.Contains(string(b), row) {
			t.Errorf("docs/protocol.md has no row %q", row)
		}
	}
}
