package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// ask is a request for a part of a value.
type ask struct {
	off  int64   // -1: the last n bytes
	n    int64   // > 0, or -1: to the end
	size int64   // of the whole value, -1 if not known
	pin  Version // "" for any
	// cut allows the part to end beyond the value; the answer is then shorter.
	cut bool
	// limit, if positive, is the length above which a value is not read.
	limit int64
	// measure asks for the size of the value alone.
	measure bool
}

// answer is the received part.
type answer struct {
	bytes   []byte
	size    int64 // of the whole value, -1 if unknown
	version Version
	stamp   kv.Stamp
}

func (a *answer) info() Info { return Info{a.size, a.version, a.stamp} }

// errNoSize means that the server refuses a range, or that the value is longer
// than the limit, and its length is unknown.
var errNoSize = errors.New("remote: length unknown")

// fetch reads a part of key. The bytes are in dst if that is not nil and they
// fit. Missing keys are kv.ErrNotFound, parts not inside the value kv.ErrRange,
// other versions than the one asked for kv.ErrChanged.
func (o *Objects) fetch(ctx context.Context, key string, a ask, dst []byte) (got answer, err error) {
	whole := a.off == 0 && (a.n < 0 || a.n == a.size)
	edit := func(req *http.Request) {
		if !whole {
			req.Header.Set("Range", a.header())
		}
	}
	err = o.do(ctx, http.MethodGet, key, a.pin, edit, func(resp *http.Response) error {
		got = answer{size: -1, version: o.p.Version(resp.Header), stamp: stampOf(resp.Header)}
		switch {
		case o.p.Missing(resp):
			return kv.ErrNotFound
		case resp.StatusCode == http.StatusPreconditionFailed:
			return fmt.Errorf("%w: %w", kv.ErrChanged, o.c.Failed(resp, ""))
		case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
			return a.refused(&got, resp.Header.Get("Content-Range"))
		case resp.StatusCode != http.StatusOK && (resp.StatusCode != http.StatusPartialContent || whole):
			return o.c.Failed(resp, o.p.Code(resp))
		}
		if err := plain(resp); err != nil {
			return err
		}
		if a.pin != "" && got.version != a.pin {
			return fmt.Errorf("%w: %s, not %s", kv.ErrChanged, orNone(got.version), a.pin)
		}
		if resp.StatusCode == http.StatusOK {
			return o.readWhole(resp, a, dst, &got)
		}
		return o.readPart(resp, a, dst, &got)
	})
	return got, err
}

func orNone(v Version) string {
	if v == "" {
		return "no version"
	}
	return string(v)
}

// header is the value of the header Range.
func (a ask) header() string {
	switch {
	case a.off < 0:
		return fmt.Sprintf("bytes=-%d", a.n)
	case a.n < 0:
		return fmt.Sprintf("bytes=%d-", a.off)
	}
	return fmt.Sprintf("bytes=%d-%d", a.off, a.off+a.n-1)
}

// resolve gives the part in a value of size bytes.
func (a ask) resolve(size int64) (off, n int64, err error) {
	switch {
	case a.off < 0:
		return kv.Last(a.n).Resolve(size)
	case a.n < 0:
		return kv.From(a.off).Resolve(size)
	case a.cut && a.off < size:
		return a.off, min(a.n, size-a.off), nil
	}
	return kv.Span(a.off, a.n).Resolve(size)
}

// refused is what answer 416 means.
func (a ask) refused(got *answer, contentRange string) error {
	size, err := strconv.ParseInt(strings.TrimPrefix(contentRange, "bytes */"), 10, 64)
	if err != nil || size < 0 {
		return errNoSize
	}
	got.size = size
	_, n, err := a.resolve(size)
	if err == nil && n > 0 {
		return errNoSize // by its Content-Range the bytes exist
	}
	got.bytes = []byte{}
	return err
}

// plain checks that the body has no Content-Encoding.
func plain(resp *http.Response) error {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return wrong(resp, fmt.Errorf("%w: the server sends it with Content-Encoding %.40q", ErrAnswer, enc))
	}
	return nil
}

// changed compares the length of the value with the one that is known.
func (a ask) changed(size int64) error {
	if a.size >= 0 && size >= 0 && a.size != size {
		return fmt.Errorf("%w: it has %d bytes, not %d", kv.ErrChanged, size, a.size)
	}
	return nil
}

// readPart reads answer 206.
func (o *Objects) readPart(resp *http.Response, a ask, dst []byte, got *answer) error {
	from, to, size, ok := parseContentRange(resp.Header.Get("Content-Range"))
	if !ok {
		return wrong(resp, fmt.Errorf("%w: Content-Range %.60q", ErrAnswer, resp.Header.Get("Content-Range")))
	}
	got.size = size
	if err := a.changed(size); err != nil {
		return err
	}
	off, n := a.off, a.n
	switch {
	case size >= 0:
		var err error
		if off, n, err = a.resolve(size); err != nil {
			return err
		}
	case a.off < 0: // without a size, the part must end here
		off, n = from, a.n
	case a.n < 0:
		n = to - from + 1
	}
	if from != off || to-from+1 != n || resp.ContentLength >= 0 && resp.ContentLength != n {
		return wrong(resp, fmt.Errorf("%w: asked for %s, got %d bytes of Content-Range %.60q",
			ErrAnswer, a.header(), resp.ContentLength, resp.Header.Get("Content-Range")))
	}
	return readExactly(resp, n, dst, got)
}

// parseContentRange reads "bytes from-to/size" (RFC 9110, 14.4); size is -1
// for "*".
func parseContentRange(s string) (from, to, size int64, ok bool) {
	rest, isBytes := strings.CutPrefix(s, "bytes ")
	span, total, hasTotal := strings.Cut(rest, "/")
	a, b, hasSpan := strings.Cut(span, "-")
	from, err1 := strconv.ParseInt(a, 10, 64)
	to, err2 := strconv.ParseInt(b, 10, 64)
	size = -1
	var err3 error
	if total != "*" {
		size, err3 = strconv.ParseInt(total, 10, 64)
	}
	ok = isBytes && hasTotal && hasSpan && err1 == nil && err2 == nil && err3 == nil &&
		0 <= from && from <= to && (total == "*" || to < size) && to-from+1 > 0
	// The answer of the standard library's server for an empty value.
	ok = ok || s == "bytes 0--1/0"
	return from, to, size, ok
}

// readWhole reads answer 200: the whole value, either requested or because the
// server does not support ranges. In that case bytes before the part are read
// and dropped, and bytes behind it are not read.
func (o *Objects) readWhole(resp *http.Response, a ask, dst []byte, got *answer) error {
	got.size = resp.ContentLength
	if err := a.changed(got.size); err != nil {
		return err
	}
	if got.size < 0 {
		return o.readUnsized(resp, a, got)
	}
	if a.limit > 0 && got.size > a.limit {
		return nil
	}
	if a.measure {
		return nil
	}
	off, n, err := a.resolve(got.size)
	if err != nil {
		return err
	}
	if off > o.c.o.MaxUnsized {
		return wrong(resp, fmt.Errorf("%w: the server does not support ranges, and the part begins at byte %d", ErrAnswer, off))
	}
	if _, err := io.CopyN(io.Discard, resp.Body, off); err != nil {
		return short(resp, err)
	}
	if off+n == got.size {
		return readExactly(resp, n, dst, got)
	}
	got.bytes, err = readN(resp, n, dst)
	return err
}

// readUnsized reads the needed part of a value of unknown length.
func (o *Objects) readUnsized(resp *http.Response, a ask, got *answer) error {
	limit := o.c.o.MaxUnsized
	if a.off >= 0 && a.n >= 0 {
		limit = min(limit, a.off+a.n)
	} else if a.limit > 0 {
		limit = min(limit, a.limit)
	} else if a.size >= 0 {
		limit = min(limit, a.size)
	}
	if a.measure {
		n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, limit+1))
		if got.size = n; err == nil && n > limit {
			err = unsized(resp, limit)
		}
		return err
	}
	b, err := readUpTo(resp, limit+1)
	if err != nil {
		return err
	}
	if int64(len(b)) <= limit {
		got.size = int64(len(b)) // it ended
		if err := a.changed(got.size); err != nil {
			return err
		}
	} else if a.size >= 0 && limit >= a.size {
		return fmt.Errorf("%w: it has more than %d bytes", kv.ErrChanged, a.size)
	} else if limit == a.limit {
		return errNoSize // over the limit, and of unknown length
	} else if limit == o.c.o.MaxUnsized {
		return unsized(resp, limit)
	}
	off, n, err := a.resolve(int64(len(b)))
	if err != nil {
		return err
	}
	got.bytes = b[off : off+n : off+n]
	return nil
}

// unsized is the error of an answer that may have no end.
func unsized(resp *http.Response, limit int64) error {
	return wrong(resp, fmt.Errorf("%w: more than %d bytes, and the server does not say how many", ErrAnswer, limit))
}

// readExactly reads n bytes, after which the body must end.
func readExactly(resp *http.Response, n int64, dst []byte, got *answer) (err error) {
	if got.bytes, err = readN(resp, n, dst); err != nil {
		return err
	}
	var more [1]byte
	switch k, err := resp.Body.Read(more[:]); {
	case k > 0:
		return wrong(resp, fmt.Errorf("%w: more than the declared %d bytes", ErrAnswer, n))
	case err != nil && err != io.EOF:
		return err
	}
	return nil
}

// readN reads n bytes, into dst if they fit.
func readN(resp *http.Response, n int64, dst []byte) ([]byte, error) {
	if err := kv.CheckHeld(n); err != nil {
		return nil, wrong(resp, err)
	}
	if dst == nil || int64(cap(dst)) < n {
		if n > trusted {
			b, err := readUpTo(resp, n)
			if err == nil && int64(len(b)) < n {
				err = short(resp, io.ErrUnexpectedEOF)
			}
			return b, err
		}
		dst = make([]byte, n)
	}
	if _, err := io.ReadFull(resp.Body, dst[:n]); err != nil {
		return nil, short(resp, err)
	}
	return dst[:n], nil
}

// trusted bounds the memory that is reserved for a declared length. Beyond,
// memory grows with the bytes that arrive.
const trusted = 1 << 20

// readUpTo reads until the end, but at most limit bytes.
func readUpTo(resp *http.Response, limit int64) ([]byte, error) {
	b := make([]byte, 0, min(limit, trusted))
	for int64(len(b)) < limit {
		if len(b) == cap(b) {
			// Growing by doubling reads each byte into place once or twice.
			next := make([]byte, len(b), min(limit, 2*int64(cap(b))))
			copy(next, b)
			b = next
		}
		n, err := resp.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// short is the error of a body that ends too early; another try may do better.
func short(resp *http.Response, err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	var t *transient
	if errors.As(err, &t) {
		return err
	}
	return &transient{err: wrong(resp, err)}
}
