package s3

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// The published examples of AWS: "Signature Calculations for the Authorization Header" and
// "Authenticating Requests: Using Query Parameters" of the S3 API reference, and the test
// suite of Signature Version 4, whose service is called "service".
func TestPublishedSignatures(t *testing.T) {
	const (
		example = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
		suite   = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
		s3Scope = "20130524/us-east-1/s3/aws4_request"
	)
	for _, test := range []struct {
		name, method, target, secret, scope, at string
		headers                                 []string // in the order in which they are signed
		payload, signature                      string
		presigned                               bool
	}{
		{"get object", "GET", "http://examplebucket.s3.amazonaws.com/test.txt", example, s3Scope, "20130524T000000Z",
			[]string{"host", "range: bytes=0-9", "x-amz-content-sha256: " + emptyHash, "x-amz-date: 20130524T000000Z"}, emptyHash,
			"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", false},
		{"put object", "PUT", "http://examplebucket.s3.amazonaws.com/test$file.text", example, s3Scope, "20130524T000000Z",
			[]string{"date: Fri, 24 May 2013 00:00:00 GMT", "host", "x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
				"x-amz-date: 20130524T000000Z", "x-amz-storage-class: REDUCED_REDUNDANCY"}, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd", false},
		{"get lifecycle", "GET", "http://examplebucket.s3.amazonaws.com/?lifecycle", example, s3Scope, "20130524T000000Z",
			[]string{"host", "x-amz-content-sha256: " + emptyHash, "x-amz-date: 20130524T000000Z"}, emptyHash,
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", false},
		{"list objects", "GET", "http://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", example, s3Scope, "20130524T000000Z",
			[]string{"host", "x-amz-content-sha256: " + emptyHash, "x-amz-date: 20130524T000000Z"}, emptyHash,
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7", false},
		{"presigned", "GET", "http://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=x",
			example, s3Scope, "20130524T000000Z", []string{"host"}, unsignedPayload, "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404", true},
		{"get-vanilla", "GET", "http://example.amazonaws.com/", suite, "20150830/us-east-1/service/aws4_request", "20150830T123600Z",
			[]string{"host", "x-amz-date: 20150830T123600Z"}, emptyHash, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", false},
		{"get-vanilla-query-order-key-case", "GET", "http://example.amazonaws.com/?Param2=value2&Param1=value1", suite, "20150830/us-east-1/service/aws4_request", "20150830T123600Z",
			[]string{"host", "x-amz-date: 20150830T123600Z"}, emptyHash, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500", false},
		{"get-utf8", "GET", "http://example.amazonaws.com/ሴ", suite, "20150830/us-east-1/service/aws4_request", "20150830T123600Z",
			[]string{"host", "x-amz-date: 20150830T123600Z"}, emptyHash, "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85", false},
		{"get-header-value-trim", "GET", "http://example.amazonaws.com/", suite, "20150830/us-east-1/service/aws4_request", "20150830T123600Z",
			[]string{"host", "my-header1:  value1", "my-header2:  \"a   b   c\"", "x-amz-date: 20150830T123600Z"}, emptyHash, "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736", false},
		{"post-vanilla", "POST", "http://example.amazonaws.com/", suite, "20150830/us-east-1/service/aws4_request", "20150830T123600Z",
			[]string{"host", "x-amz-date: 20150830T123600Z"}, emptyHash, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b", false},
	} {
		r := must.Get(http.NewRequest(test.method, test.target, nil))(t)
		c := &claim{scope: test.scope, at: test.at, payload: test.payload, signature: test.signature, presigned: test.presigned}
		for _, line := range test.headers {
			name, value, _ := strings.Cut(line, ":")
			if c.headers = append(c.headers, name); value != "" {
				r.Header.Set(name, value[1:])
			}
		}
		if !c.verify(r, r.URL.Query(), test.secret) {
			t.Errorf("%s: the signature is refused", test.name)
		}
		if c.verify(r, r.URL.Query(), test.secret+"x") {
			t.Errorf("%s: the signature of another secret is taken", test.name)
		}
	}
}

// streamed is the example of AWS of a body in chunks: 66,560 letters a, in chunks of 64 KiB
// ("Transferring Payload in Multiple Chunks", and the same with a trailer).
func streamed(trailer bool) (r *http.Request, body string) {
	r, _ = http.NewRequest("PUT", "http://s3.amazonaws.com/examplebucket/chunkObject.txt", nil)
	seed, mode, names := "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9", signedChunks, "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class"
	signatures := []string{"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497", "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"}
	if trailer {
		seed, mode, names = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e", signedTrailer, "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer"
		signatures = []string{"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2", "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7", "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"}
		r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32c")
	}
	var b strings.Builder
	for i, n := range []int{65536, 1024, 0} {
		fmt.Fprintf(&b, "%x;chunk-signature=%s\r\n%s", n, signatures[i], strings.Repeat("a", n))
		if n > 0 {
			b.WriteString("\r\n")
		}
	}
	if trailer {
		b.WriteString("x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n")
	}
	b.WriteString("\r\n")
	for name, value := range map[string]string{
		"X-Amz-Date": "20130524T000000Z", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY", "X-Amz-Content-Sha256": mode, "Content-Encoding": "aws-chunked",
		"X-Amz-Decoded-Content-Length": "66560",
		"Authorization":                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=" + names + ",Signature=" + seed,
	} {
		r.Header.Set(name, value)
	}
	r.ContentLength = 66824
	return r, b.String()
}

// read authenticates a request and reads its body.
func readStreamed(r *http.Request, body string) ([]byte, error) {
	r.Body = io.NopCloser(strings.NewReader(body))
	q := r.URL.Query()
	c, err := claimOf(r, q)
	if err == nil {
		err = c.fresh(q, time.Date(2013, 5, 24, 0, 1, 0, 0, time.UTC))
	}
	if err != nil {
		return nil, err
	}
	if c.name != "AKIAIOSFODNN7EXAMPLE" || !c.verify(r, q, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY") {
		return nil, errChunkSign
	}
	p, err := newPayload(r, c, false)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(p)
}

func TestPublishedStreams(t *testing.T) {
	want := bytes.Repeat([]byte("a"), 66560)
	for _, trailer := range []bool{false, true} {
		r, body := streamed(trailer)
		if got, err := readStreamed(r, body); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("trailer %v: %d bytes, %v", trailer, len(got), err)
		}
		refused := func(what string, r *http.Request, body string) {
			t.Helper()
			var own *apiError
			if _, err := readStreamed(r, body); err == nil {
				t.Errorf("trailer %v, %s: it is taken", trailer, what)
			} else if !errors.As(err, &own) {
				t.Errorf("trailer %v, %s: %v", trailer, what, err)
			}
		}
		// Every byte of the framing, and some of the long runs of the same letter.
		for i := range body {
			run := i > 0 && i+1 < len(body) && body[i-1:i+2] == "aaa"
			if run && i%4001 != 0 {
				continue
			}
			changed := []byte(body)
			changed[i] ^= 1
			if string(changed) == body {
				continue
			}
			got, err := readStreamed(r, string(changed))
			if err == nil && bytes.Equal(got, want) && (body[i] == '\r' || strings.EqualFold(string(changed), body)) {
				continue // the same body, written otherwise
			}
			if err == nil {
				t.Errorf("trailer %v: byte %d of the body changed from %q to %q", trailer, i, body[i], changed[i])
			}
		}
		for i := len(body) - 1; i >= 0; i-- {
			if i < len(body)-600 && i%4001 != 0 || trailer && i == len(body)-2 { // the empty line may be missing
				continue
			}
			refused(fmt.Sprintf("the first %d bytes", i), r, body[:i])
		}
		refused("more than the body", r, body+"x")
		end := strings.Index(body, "\r\n0;") + 2
		refused("no last chunk", r, body[:end])
		refused("a chunk that is sent twice", r, body[:65536+87]+body[:end]+body[end:])
		for name, values := range r.Header {
			for i := range values[0] {
				r, _ := streamed(trailer)
				changed := []byte(values[0])
				changed[i] ^= 1
				r.Header.Set(name, string(changed))
				refused(fmt.Sprintf("byte %d of %s", i, name), r, body)
			}
		}
		for _, n := range []string{"66559", "66561", "0", "-1", ""} {
			r, _ := streamed(trailer)
			r.Header.Set("X-Amz-Decoded-Content-Length", n)
			refused("another length", r, body)
		}
	}
}

// closing is a hash that can be closed.
type closing struct{ hash.Hash }

func (closing) Close() {}

// Bodies in chunks are stored if each chunk, the last one and the trailer are signed, as
// another implementation signs them.
func TestStreams(t *testing.T) {
	s := newSite(t, nil)
	session, in := s.begin()
	for _, size := range []int{0, 1, 65536, 200_000, 3 << 20} {
		for _, trailer := range []bool{false, true} {
			for _, announced := range []bool{true, false} {
				for _, flip := range []int{-1, 0, 84, 90, -200, -30} {
					body := strings.Repeat("z", size)
					key := fmt.Sprintf("stream-%d-%v-%v-%d", size, trailer, announced, flip)
					r := must.Get(http.NewRequest("PUT", s.url+"/w/"+in+key, strings.NewReader(body)))(t)
					if trailer {
						sum := sha256.Sum256([]byte(body))
						r.Trailer = http.Header{"X-Amz-Checksum-Sha256": {base64.StdEncoding.EncodeToString(sum[:])}}
					}
					r = signer.StreamingSignV4(r, "writer", writerSecret, "", "us-east-1", int64(size), time.Now().UTC(), closing{sha256.New()})
					sent := must.Get(io.ReadAll(r.Body))(t)
					at := flip
					if flip < -1 {
						at = max(len(sent)+flip, 0)
					}
					if at >= len(sent) {
						continue
					}
					if at >= 0 {
						sent[at] ^= 0x10
					}
					r.Trailer = nil
					r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
					if !announced {
						r.ContentLength = -1
					}
					a := send(t, r)
					got, err := kv.Get(bg, session.Engine(), key)
					switch {
					case flip == -1 && (a.status != 200 || err != nil || string(got) != body):
						t.Errorf("%s: %+v, %d bytes stored, %v", key, a, len(got), err)
					case flip != -1 && (a.status == 200 || !errors.Is(err, kv.ErrNotFound)):
						t.Errorf("%s: %+v, %d bytes stored, %v", key, a, len(got), err)
					}
				}
			}
		}
	}
}

// A body in chunks is an error, or it is the body that another reader finds in it too.
func FuzzChunks(f *testing.F) {
	_, signed := streamed(true)
	for _, body := range []string{"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", "0\r\n\r\n", "1;a=b\r\nx\r\n1\r\ny\r\n0\r\n\r\n", "ffffffffffffffff\r\n", signed[65530:], "0\r\n" + strings.Repeat("\xff", 40) + ":\r\n\r\n"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c := &chunks{in: bufio.NewReaderSize(strings.NewReader(body), 64), trailer: true}
		got, err := io.ReadAll(c)
		var own *apiError
		if err != nil {
			if !errors.As(err, &own) {
				t.Errorf("%v", err)
			}
			return
		}
		if len(got) > len(body) || len(c.values) > maxTrailer {
			t.Errorf("%d bytes and %d values of a body of %d", len(got), len(c.values), len(body))
		}
		again := fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(got), got)
		if len(got) == 0 {
			again = "0\r\n"
		}
		for name, value := range c.values {
			again += name + ":" + value + "\r\n"
		}
		// Bytes that are not UTF-8 are longer in small letters, so that lines may be.
		c2 := &chunks{in: bufio.NewReader(strings.NewReader(again + "\r\n")), trailer: true}
		if same, err := io.ReadAll(c2); err != nil || string(same) != string(got) || !maps.Equal(c.values, c2.values) {
			t.Errorf("%q, then %q, %v", got, same, err)
		}
	})
}
