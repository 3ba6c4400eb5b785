package s3kv

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// signing is a RoundTripper that signs requests. If the bucket is in another
// region, it sends them again to that region. If the server says that the credentials are no
// longer valid and the configured source now gives others, it sends them again with those.
type signing struct {
	b    *bucket
	next http.RoundTripper
}

func (s signing) RoundTrip(req *http.Request) (*http.Response, error) {
	region := s.b.at.region()
	resp, err := s.send(req, region)
	if err != nil || s.b.at.endpoint != nil {
		return resp, err
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusBadRequest, http.StatusForbidden:
	default:
		return resp, nil
	}
	home := resp.Header.Get("X-Amz-Bucket-Region")
	if home == "" || home == region || len(home) > 40 || strings.Trim(home, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return resp, nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection may serve again
	_ = resp.Body.Close()
	s.b.at.moved(home)
	again, err := repeat(req)
	if err != nil {
		return nil, err
	}
	path, raw, query := req.URL.Path, req.URL.RawPath, req.URL.RawQuery
	again.URL = s.b.at.url(s.b.name, home)
	again.Host = again.URL.Host
	again.URL.Path, again.URL.RawPath, again.URL.RawQuery = path, raw, query
	return s.send(again, home)
}

// repeat returns a copy of a request that was sent, to be sent again.
func repeat(req *http.Request) (again *http.Request, err error) {
	again = req.Clone(req.Context())
	if req.GetBody != nil {
		again.Body, err = req.GetBody()
	}
	return again, err
}

// stale are the codes of answers to credentials that were valid once.
var stale = []string{"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"}

func (s signing) send(req *http.Request, region string) (*http.Response, error) {
	if s.b.identity == nil {
		return s.next.RoundTrip(req)
	}
	c, err := s.b.identity.get(req.Context(), s.b.o.Forbidden)
	if err != nil {
		return nil, fmt.Errorf("s3kv: %w", err)
	}
	// A RoundTripper does not change its request.
	resp, err := s.next.RoundTrip(signer.SignV4(*req.Clone(req.Context()), c.AccessKeyID, c.SecretAccessKey, c.SessionToken, region))
	if err != nil || resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	// An answer to HEAD has no code.
	if !slices.Contains(stale, s.b.Code(resp)) && (req.Method != http.MethodHead || resp.StatusCode != http.StatusBadRequest) {
		return resp, nil
	}
	renewed, err := s.b.identity.renew(req.Context(), c, s.b.o.Forbidden)
	if err != nil || renewed.AccessKeyID == "" || renewed.AccessKeyID == c.AccessKeyID && renewed.SecretAccessKey == c.SecretAccessKey && renewed.SessionToken == c.SessionToken {
		return resp, nil // the first answer says more
	}
	_ = resp.Body.Close()
	again, err := repeat(req)
	if err != nil {
		return nil, err
	}
	return s.next.RoundTrip(signer.SignV4(*again, renewed.AccessKeyID, renewed.SecretAccessKey, renewed.SessionToken, region))
}
