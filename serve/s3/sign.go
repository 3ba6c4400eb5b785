package s3

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/serve"
)

// Signatures follow AWS Signature Version 4, in the header Authorization or in the query
// of a presigned URL.

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
	maxSkew    = 15 * time.Minute
	maxExpires = 7 * 24 * time.Hour

	unsignedPayload = "UNSIGNED-PAYLOAD"
	emptyHash       = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// claim describes the signature of a request.
type claim struct {
	name, scope string // scope is DAY/REGION/s3/aws4_request
	at          string // in timeFormat
	headers     []string
	signature   string
	presigned   bool
	payload     string // the hash of the body, or how it is sent
	key         []byte // of the scope, once the signature is verified
}

var errVersion2 = &apiError{http.StatusBadRequest, "InvalidRequest", "the signature has version 2, and this server verifies version 4 only: " +
	"set it with `aws configure set default.s3.signature_version s3v4`, in boto3 with signature_version of botocore.config.Config, or with signature_v2 = False in .s3cfg"}

// claimOf returns the claim of a request, nil without a signature.
func claimOf(r *http.Request, q url.Values) (*claim, error) {
	c := &claim{payload: r.Header.Get("X-Amz-Content-Sha256")}
	header := r.Header.Get("Authorization")
	credential, signed := q.Get("X-Amz-Credential"), q.Get("X-Amz-SignedHeaders")
	malformed := func(what string) (*claim, error) {
		return nil, &apiError{http.StatusBadRequest, "AuthorizationHeaderMalformed", "the signature of the request: " + what}
	}
	switch {
	case header != "" && (q.Has("X-Amz-Signature") || q.Has("Signature")):
		return nil, &apiError{http.StatusBadRequest, "InvalidArgument", "a request is signed in its header or its query, not in both"}
	case strings.HasPrefix(header, "AWS "), q.Has("AWSAccessKeyId"), q.Has("Signature"):
		return nil, errVersion2
	case header != "":
		kind, rest, _ := strings.Cut(header, " ")
		if kind != algorithm {
			return malformed("it is not of the kind " + algorithm)
		}
		for part := range strings.SplitSeq(rest, ",") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
			case "Credential":
				credential = value
			case "SignedHeaders":
				signed = value
			case "Signature":
				c.signature = value
			}
		}
		if c.at = r.Header.Get("X-Amz-Date"); c.at == "" {
			if t, err := http.ParseTime(r.Header.Get("Date")); err == nil {
				c.at = t.UTC().Format(timeFormat)
			}
		}
	case q.Has("X-Amz-Signature"), q.Has("X-Amz-Credential"):
		if q.Get("X-Amz-Algorithm") != algorithm {
			return malformed("it is not of the kind " + algorithm)
		}
		c.signature, c.at, c.presigned = q.Get("X-Amz-Signature"), q.Get("X-Amz-Date"), true
		c.payload = cmp.Or(c.payload, q.Get("X-Amz-Content-Sha256"), unsignedPayload)
	default:
		return nil, nil
	}
	c.name, c.scope, _ = strings.Cut(credential, "/")
	scope := strings.Split(c.scope, "/")
	if len(scope) != 4 || scope[2] != "s3" || scope[3] != "aws4_request" {
		return malformed("the credential is NAME/DAY/REGION/s3/aws4_request")
	}
	if day, _, _ := strings.Cut(c.at, "T"); day != scope[0] {
		// The signing key is derived from the secret and the day, and valid on that day only.
		return nil, &apiError{http.StatusForbidden, "SignatureDoesNotMatch", "the credential and the request have different dates"}
	}
	if c.payload == "" {
		if r.ContentLength != 0 {
			return nil, &apiError{http.StatusBadRequest, "InvalidRequest", "the header X-Amz-Content-Sha256 is missing"}
		}
		c.payload = emptyHash
	}
	if signed != "" {
		c.headers = strings.Split(signed, ";")
	}
	if !slices.Contains(c.headers, "host") {
		return malformed("the header host is not signed")
	}
	for name := range r.Header {
		// Such headers change the meaning of the request. The hash is signed without its header.
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && name != "x-amz-content-sha256" && !slices.Contains(c.headers, name) {
			return nil, &apiError{http.StatusForbidden, "AccessDenied", "the header " + serve.Clip(name) + " is not signed"}
		}
	}
	return c, nil
}

// fresh returns an error if a claim is too old, or of the future.
func (c *claim) fresh(q url.Values, now time.Time) error {
	at, err := time.Parse(timeFormat, c.at)
	if err != nil {
		return denied("the request has no date of the form YYYYMMDDTHHMMSSZ")
	}
	if !c.presigned {
		if d := now.Sub(at); d > maxSkew || d < -maxSkew {
			return &apiError{http.StatusForbidden, "RequestTimeTooSkewed", "the clocks of client and server differ by more than 15 minutes"}
		}
		return nil
	}
	seconds, err := strconv.ParseInt(q.Get("X-Amz-Expires"), 10, 64)
	if err != nil || seconds < 1 || seconds > int64(maxExpires/time.Second) {
		return &apiError{http.StatusBadRequest, "AuthorizationQueryParametersError", "X-Amz-Expires is a number of seconds from 1 to 604800"}
	}
	if at.Sub(now) > maxSkew || now.After(at.Add(time.Duration(seconds)*time.Second)) {
		return denied("the URL is not valid at this time; it may have expired")
	}
	return nil
}

// verify reports whether a secret made the signature, and keeps the key of the scope.
func (c *claim) verify(r *http.Request, q url.Values, secret string) bool {
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(c.scope, "/") {
		key = hmacOf(key, part)
	}
	sum := sha256.Sum256([]byte(c.canonical(r, q)))
	c.key = key
	return c.matches(c.sign(algorithm, hex.EncodeToString(sum[:])), c.signature)
}

// sign signs lines, which follow the kind, the time and the scope.
func (c *claim) sign(kind string, lines ...string) string {
	text := kind + "\n" + c.at + "\n" + c.scope + "\n" + strings.Join(lines, "\n")
	return hex.EncodeToString(hmacOf(c.key, text))
}

func (*claim) matches(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

func hmacOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonical returns the canonical request.
func (c *claim) canonical(r *http.Request, q url.Values) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + serve.EscapePath(r.URL.Path) + "\n")
	var pairs [][2]string
	for name, values := range q {
		for _, v := range values {
			if !c.presigned || name != "X-Amz-Signature" {
				pairs = append(pairs, [2]string{serve.EscapeSegment(name), serve.EscapeSegment(v)})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p[0] + "=" + p[1])
	}
	b.WriteByte('\n')
	for _, name := range c.headers {
		values := r.Header.Values(name)
		switch name {
		case "host":
			values = []string{r.Host}
		case "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		case "transfer-encoding":
			values = r.TransferEncoding
		}
		b.WriteString(name + ":")
		for i, v := range values {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.Join(strings.Fields(v), " "))
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n" + strings.Join(c.headers, ";") + "\n" + c.payload)
	return b.String()
}

// authenticate returns the sender of a request, and the claim if it is signed.
func (h *Handler) authenticate(r *http.Request, q url.Values) (*serve.Principal, *claim, error) {
	c, err := claimOf(r, q)
	if err == nil && c == nil {
		who, err := h.unsigned(r)
		return who, nil, err
	}
	if h.o.Keys == nil {
		err = &apiError{http.StatusForbidden, "InvalidAccessKeyId", "this server has no keys"}
	}
	if err == nil {
		err = c.fresh(q, h.now())
	}
	if err == nil {
		secrets, people := h.o.Keys.Secrets(c.name)
		for i, secret := range secrets {
			if c.verify(r, q, secret) {
				return people[i], c, nil
			}
		}
		err = &apiError{http.StatusForbidden, "InvalidAccessKeyId", "there is no key of that name whose secret is in the key file"}
		if len(secrets) > 0 {
			err = &apiError{http.StatusForbidden, "SignatureDoesNotMatch", "the signature does not match the key"}
		}
	}
	h.o.Log.WarnContext(r.Context(), "signature refused", "why", err.Error(), "client", r.RemoteAddr)
	return nil, nil, err
}

// unsigned returns the principal of a request without a signature. Web pages of other
// sites can make the browser send such a request, also to servers that only this machine
// reaches.
func (h *Handler) unsigned(r *http.Request) (*serve.Principal, error) {
	who := h.o.Anonymous
	if h.o.Keys != nil {
		who = h.o.Keys.Anonymous()
	}
	switch {
	case who == nil:
		return nil, denied("a signature with a key is needed")
	case r.Header.Get("Origin") != "":
		return nil, denied("web pages read over HTTP, not S3")
	case (h.o.Local || h.o.Keys == nil) && r.Host != "" && !serve.Loopback(r.Host):
		return nil, denied("this server answers on this machine only, by the names localhost and 127.0.0.1")
	}
	return who, nil
}
