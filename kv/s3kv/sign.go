package s3kv

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// signing is a RoundTripper that signs requests. If the bucket is in another
// region, it sends them again to that region.
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
	again := req.Clone(req.Context())
	path, raw, query := req.URL.Path, req.URL.RawPath, req.URL.RawQuery
	again.URL = s.b.at.url(s.b.name, home)
	again.Host = again.URL.Host
	again.URL.Path, again.URL.RawPath, again.URL.RawQuery = path, raw, query
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return s.send(again, home)
}

func (s signing) send(req *http.Request, region string) (*http.Response, error) {
	if s.b.identity == nil {
		return s.next.RoundTrip(req)
	}
	c, err := s.b.identity.get(req.Context(), s.b.o.Forbidden)
	if err != nil {
		return nil, fmt.Errorf("s3kv: %w", err)
	}
	req = req.Clone(req.Context()) // a RoundTripper does not change its request
	return s.next.RoundTrip(signer.SignV4(*req, c.AccessKeyID, c.SecretAccessKey, c.SessionToken, region))
}
