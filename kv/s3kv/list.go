package s3kv

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/zarrdb/zarrdb/kv/remote"
)

// result is the answer to ListObjectsV2.
type result struct {
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct{ Key string }
	CommonPrefixes        []struct{ Prefix string }
}

// maxResult bounds an answer: 1000 keys of 1024 bytes, escaped, with their
// attributes.
const maxResult = 16 << 20

// page asks for one page.
func (b *bucket) page(ctx context.Context, q remote.Query) (p *remote.Page, err error) {
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}}
	q.Parameters(query, "start-after", "continuation-token")
	err = b.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return b.request(ctx, http.MethodGet, "", query, nil)
	}, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return b.c.Failed(resp, b.Code(resp))
		}
		body := &io.LimitedReader{R: resp.Body, N: maxResult}
		var r result
		if err := xml.NewDecoder(body).Decode(&r); err != nil {
			if body.N <= 0 {
				err = errors.New("it is too long")
			}
			return fmt.Errorf("malformed answer: %w", err)
		}
		p, err = r.page()
		return err
	})
	return p, err
}

// page unescapes names, because XML cannot hold all of them. Servers that ignore
// encoding-type do not return it.
func (r *result) page() (*remote.Page, error) {
	plain := func(s string) (string, error) { return s, nil }
	if r.EncodingType == "url" {
		plain = url.QueryUnescape
	}
	p := &remote.Page{}
	for _, c := range r.Contents {
		key, err := plain(c.Key)
		if err != nil {
			return nil, err
		}
		p.Keys = append(p.Keys, key)
	}
	for _, c := range r.CommonPrefixes {
		prefix, err := plain(c.Prefix)
		if err != nil {
			return nil, err
		}
		p.Prefixes = append(p.Prefixes, prefix)
	}
	if r.IsTruncated {
		if p.Next = r.NextContinuationToken; p.Next == "" {
			return nil, errors.New("the answer is truncated but has no continuation token")
		}
	}
	return p, nil
}
