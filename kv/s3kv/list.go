package s3kv

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// page is an answer to ListObjectsV2.
type page struct {
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct{ Key string }
	CommonPrefixes        []struct{ Prefix string }
}

// maxPage bounds an answer: 1000 keys of 1024 bytes, escaped, with what is said
// of each.
const maxPage = 16 << 20

// maxEmpty is how many pages without a key may follow each other. A bucket
// gives some where much was deleted.
const maxEmpty = 1000

// pages yields the answers to a listing.
func (b *bucket) pages(ctx context.Context, query url.Values) iter.Seq2[*page, error] {
	return func(yield func(*page, error) bool) {
		query.Set("list-type", "2")
		query.Set("encoding-type", "url")
		empty := 0
		for token := ""; ; {
			if token != "" {
				query.Set("continuation-token", token)
			}
			p, err := b.page(ctx, query)
			if err != nil {
				yield(nil, fmt.Errorf("list bucket %s: %w", b.name, err))
				return
			}
			if !yield(p, nil) || !p.IsTruncated {
				return
			}
			if empty++; len(p.Contents)+len(p.CommonPrefixes) > 0 {
				empty = 0
			}
			if p.NextContinuationToken == "" || p.NextContinuationToken == token || empty > maxEmpty {
				yield(nil, fmt.Errorf("list bucket %s: the server says that there is more, and does not give it", b.name))
				return
			}
			token = p.NextContinuationToken
		}
	}
}

func (b *bucket) page(ctx context.Context, query url.Values) (p *page, err error) {
	err = b.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return b.request(ctx, http.MethodGet, "", query, nil)
	}, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return b.c.Failed(resp, b.Code(resp))
		}
		body := &io.LimitedReader{R: resp.Body, N: maxPage}
		p = new(page)
		if err := xml.NewDecoder(body).Decode(p); err != nil {
			if body.N <= 0 {
				err = errors.New("the answer is too long")
			}
			return fmt.Errorf("malformed answer: %w", err)
		}
		return p.decode()
	})
	return p, err
}

// decode takes the escapes out of names, without which XML cannot hold all of
// them. Servers that do not know the escapes do not say that they used them.
func (p *page) decode() (err error) {
	if p.EncodingType != "url" {
		return nil
	}
	for i := range p.Contents {
		if p.Contents[i].Key, err = url.QueryUnescape(p.Contents[i].Key); err != nil {
			return err
		}
	}
	for i := range p.CommonPrefixes {
		if p.CommonPrefixes[i].Prefix, err = url.QueryUnescape(p.CommonPrefixes[i].Prefix); err != nil {
			return err
		}
	}
	return nil
}

// checkEvery is how many keys are yielded between two looks at the context.
const checkEvery = 256

// List implements [kv.Lister]: a request for every thousand keys.
func (v *View) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		query := url.Values{}
		prefix, after := remote.ListArguments(opts)
		if prefix != "" {
			query.Set("prefix", prefix)
		}
		if after != "" {
			query.Set("start-after", after)
		}
		n, last := 0, ""
		for p, err := range v.b.pages(ctx, query) {
			if err != nil {
				yield("", err)
				return
			}
			for _, c := range p.Contents {
				if n++; n%checkEvery == 0 && ctx.Err() != nil {
					yield("", ctx.Err())
					return
				}
				if !strings.HasPrefix(c.Key, prefix) || c.Key <= last {
					yield("", fmt.Errorf("list bucket %s: the server lists %.200q after %.200q, asked for keys that begin with %.200q", v.b.name, c.Key, last, prefix))
					return
				}
				last = c.Key
				if c.Key <= opts.After || !strings.HasPrefix(c.Key, opts.Prefix) || validKey(c.Key) != nil {
					continue
				}
				if !yield(c.Key, nil) {
					return
				}
			}
		}
	}
}

// ListDir implements [kv.DirLister]. It holds the names of one directory,
// because the server orders them otherwise: "a-b" comes before "a/".
func (v *View) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		entries, err := v.dir(ctx, prefix)
		if err != nil {
			yield(kv.DirEntry{}, err)
			return
		}
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (v *View) dir(ctx context.Context, prefix string) ([]kv.DirEntry, error) {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		return nil, fmt.Errorf("%w: prefix %.200q of a directory does not end with a slash", kv.ErrInvalidKey, prefix)
	}
	query := url.Values{"delimiter": {"/"}}
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	var entries []kv.DirEntry
	for p, err := range v.b.pages(ctx, query) {
		if err != nil {
			return nil, err
		}
		for _, c := range p.Contents {
			if name, ok := strings.CutPrefix(c.Key, prefix); ok && !strings.Contains(name, "/") && validKey(c.Key) == nil {
				entries = append(entries, kv.DirEntry{Name: name})
			}
		}
		for _, c := range p.CommonPrefixes {
			if name, ok := strings.CutPrefix(c.Prefix, prefix); ok && strings.Count(name, "/") == 1 && strings.HasSuffix(name, "/") {
				entries = append(entries, kv.DirEntry{Name: name[:len(name)-1], Prefix: true})
			}
		}
	}
	slices.SortFunc(entries, func(a, b kv.DirEntry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), rank(a)-rank(b))
	})
	return slices.Compact(entries), nil
}

// rank orders a key before a prefix of the same name.
func rank(e kv.DirEntry) int {
	if e.Prefix {
		return 1
	}
	return 0
}
