package s3

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Ways of sending a body in chunks.
const (
	signedChunks    = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	signedTrailer   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

	checksumHeader = "x-amz-checksum-"
)

// checksums are the checksums that clients send, by the end of the header's name.
var checksums = map[string]func() hash.Hash{
	"crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"crc64nvme": func() hash.Hash { return crc64.New(crc64.MakeTable(0x9a6c9329ac4bc9b5)) },
	"sha1":      sha1.New,
	"sha256":    sha256.New,
}

// sentError is the error of reading a body: the client's fault, not one of the server.
type sentError struct{ error }

func (e sentError) Unwrap() error { return e.error }

// check is a hash that a body has to have.
type check struct {
	hash.Hash
	name string // of a checksum
	want []byte // nil until the trailer is read
	err  *apiError
}

// payload reads the body of a request, without the framing of chunks. It ends with an
// error unless the whole body has come and is the signed body. So read to the end
// before you use the bytes. Errors of the client are *apiError or sentError.
type payload struct {
	in     io.Reader
	chunks *chunks // nil for a plain body
	size   int64   // -1 if it is not known
	got    int64
	checks []*check
}

var (
	errIncomplete = &apiError{http.StatusBadRequest, "IncompleteBody", "the body is not as long as announced, or its end is missing"}
	errFraming    = &apiError{http.StatusBadRequest, "InvalidRequest", "the chunks of the body cannot be read"}
	errChunkSign  = &apiError{http.StatusForbidden, "SignatureDoesNotMatch", "a chunk or the trailer of the body is not signed by the key"}
	errDigest     = &apiError{http.StatusBadRequest, "BadDigest", "the body does not have the checksum that was sent with it"}
	errDigestForm = &apiError{http.StatusBadRequest, "InvalidDigest", "a checksum of the request cannot be read"}
	errTrailer    = &apiError{http.StatusBadRequest, "MalformedTrailerError", "the trailer of the body is not the announced one"}
	errSignedHash = &apiError{http.StatusBadRequest, "XAmzContentSHA256Mismatch", "the body differs from the signed body"}
)

// newPayload prepares to read the body of a request with a claim, which is nil without a signature.
// whole says that checksums in the header belong to the whole object, not to the body.
func newPayload(r *http.Request, c *claim, whole bool) (*payload, error) {
	p := &payload{in: r.Body, size: r.ContentLength}
	mode := r.Header.Get("X-Amz-Content-Sha256")
	if c != nil {
		mode = c.payload
	}
	trailer := r.Header.Get("X-Amz-Trailer")
	switch mode {
	case "", unsignedPayload:
	case signedChunks, signedTrailer, unsignedTrailer:
		p.chunks = &chunks{in: bufio.NewReaderSize(p.in, 8<<10), trailer: mode != signedChunks}
		if p.in = p.chunks; mode != unsignedTrailer {
			if c == nil {
				return nil, errChunkSign
			}
			p.chunks.c, p.chunks.last, p.chunks.sum = c, c.signature, sha256.New()
		}
		p.size = -1
		if text := r.Header.Get("X-Amz-Decoded-Content-Length"); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return nil, invalid("X-Amz-Decoded-Content-Length is not a length")
			}
			p.size = n
		}
	default:
		want, err := hex.DecodeString(mode)
		if err != nil || len(want) != sha256.Size {
			return nil, &apiError{http.StatusNotImplemented, "NotImplemented", "X-Amz-Content-Sha256: this way of signing a body is not supported"}
		}
		p.checks = append(p.checks, &check{Hash: sha256.New(), want: want, err: errSignedHash})
	}
	if text := r.Header.Get("Content-Md5"); text != "" {
		if err := p.expect(&check{Hash: md5.New(), err: errDigest}, text); err != nil {
			return nil, err
		}
	}
	if !whole {
		if err := p.expectHeaders(r.Header); err != nil {
			return nil, err
		}
	}
	if (trailer != "") != (p.chunks != nil && p.chunks.trailer) {
		return nil, errTrailer
	}
	for name := range strings.SplitSeq(trailer, ",") {
		name, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(name)), checksumHeader)
		if sum := checksums[name]; ok && sum != nil {
			p.checks = append(p.checks, &check{Hash: sum(), name: name, err: errDigest})
		} else if trailer != "" {
			return nil, errTrailer
		}
	}
	return p, nil
}

// expect adds a check with a sum in base64.
func (p *payload) expect(c *check, text string) (err error) {
	if c.want, err = base64.StdEncoding.DecodeString(text); err != nil || len(c.want) != c.Size() {
		return errDigestForm
	}
	p.checks = append(p.checks, c)
	return nil
}

// expectHeaders adds a check for each checksum in the header.
func (p *payload) expectHeaders(head http.Header) error {
	for name, sum := range checksums {
		if text := head.Get(checksumHeader + name); text != "" {
			if err := p.expect(&check{Hash: sum(), name: name, err: errDigest}, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read implements [io.Reader].
func (p *payload) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.hash(b[:n])
	if p.size >= 0 && p.got > p.size {
		return 0, errIncomplete
	}
	switch {
	case errors.Is(err, io.EOF):
		if err := p.verify(); err != nil {
			return 0, err
		}
	case err != nil:
		err = sentError{err}
	}
	return n, err
}

func (p *payload) hash(b []byte) {
	p.got += int64(len(b))
	for _, c := range p.checks {
		c.Write(b)
	}
}

// verify compares the hashes at the end of the body.
func (p *payload) verify() error {
	if p.size >= 0 && p.got != p.size {
		return errIncomplete
	}
	trailing := 0
	for _, c := range p.checks {
		if c.want == nil {
			text, ok := p.chunks.values[checksumHeader+c.name]
			want, err := base64.StdEncoding.DecodeString(text)
			if !ok || err != nil || len(want) != c.Size() {
				return errTrailer
			}
			c.want = want
			trailing++
		}
		if !bytes.Equal(c.Sum(nil), c.want) {
			return c.err
		}
	}
	if p.chunks != nil && len(p.chunks.values) != trailing {
		return errTrailer
	}
	return nil
}

// answer repeats the checksums that were verified.
func (p *payload) answer(head http.Header) {
	for _, c := range p.checks {
		if c.name != "" {
			head.Set(checksumHeader+c.name, base64.StdEncoding.EncodeToString(c.want))
		}
	}
}

// chunks reads a body of the form
//
//	SIZE;chunk-signature=SIGNATURE\r\n BYTES \r\n … 0;chunk-signature=SIGNATURE\r\n TRAILER \r\n
//
// and verifies the signatures, each of which covers the one before.
type chunks struct {
	in      *bufio.Reader
	c       *claim // nil if chunks are not signed
	last    string // the signature before
	sum     hash.Hash
	want    string // the signature of the chunk
	trailer bool
	values  map[string]string // of the trailer

	left  int64 // of the chunk
	begun bool
	done  bool
}

// Read implements [io.Reader].
func (c *chunks) Read(b []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
		if c.left == 0 {
			if err := c.end(); err != nil {
				return 0, err
			}
			c.done = true
			return 0, io.EOF
		}
	}
	n, err := c.in.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	if c.sum != nil {
		c.sum.Write(b[:n])
	}
	if errors.Is(err, io.EOF) {
		err = errIncomplete
	}
	return n, err
}

// next ends a chunk and reads the head of the next.
func (c *chunks) next() error {
	if c.begun {
		if line, err := c.line(); err != nil || line != "" {
			return cmp.Or(err, error(errFraming))
		}
		if err := c.signed(); err != nil {
			return err
		}
	}
	c.begun = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size, rest, _ := strings.Cut(line, ";")
	n, err := strconv.ParseUint(size, 16, 63)
	if err != nil {
		return errFraming
	}
	c.left = int64(n)
	c.want, _ = strings.CutPrefix(rest, "chunk-signature=")
	return nil
}

// signed compares the signature of a chunk that was read.
func (c *chunks) signed() error {
	if c.c == nil {
		return nil
	}
	c.last = c.c.sign(algorithm+"-PAYLOAD", c.last, emptyHash, hex.EncodeToString(c.sum.Sum(nil)))
	c.sum.Reset()
	if !c.c.matches(c.last, c.want) {
		return errChunkSign
	}
	return nil
}

const maxTrailer = 16 // lines

// end reads the rest behind the head of the last chunk.
func (c *chunks) end() error {
	if err := c.signed(); err != nil {
		return err
	}
	c.values = map[string]string{}
	var text strings.Builder
	verified := c.c == nil || !c.trailer
	for range maxTrailer {
		line, err := c.line()
		switch {
		case err != nil && !(verified && c.trailer && c.c != nil && errors.Is(err, errIncomplete)):
			return err
		case line == "" && verified: // behind a signed trailer some clients send no empty line
			if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
				return cmp.Or(err, error(errFraming))
			}
			return nil
		case line == "":
			continue // some clients send an empty line before the signature
		}
		name, value, ok := strings.Cut(line, ":")
		if name, value = strings.ToLower(name), strings.Trim(value, " \t"); !ok || !c.trailer {
			return errTrailer
		}
		if name == "x-amz-trailer-signature" && c.c != nil {
			sum := sha256.Sum256([]byte(text.String()))
			if verified || !c.c.matches(value, c.c.sign(algorithm+"-TRAILER", c.last, hex.EncodeToString(sum[:]))) {
				return errChunkSign
			}
			verified = true
			continue
		}
		if _, again := c.values[name]; again || verified && c.c != nil {
			return errTrailer
		}
		c.values[name] = value
		text.WriteString(name + ":" + value + "\n")
	}
	return errTrailer
}

// line reads a short line.
func (c *chunks) line() (string, error) {
	b, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(b) == 0:
		return "", errIncomplete
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return "", errFraming
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(string(b[:len(b)-1]), "\r"), nil
}
