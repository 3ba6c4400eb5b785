package httpkv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// Listed is a View of a server that lists its directories as zarrdb serve does: as JSON in
// pages, the entries of a directory or all keys below it. Safe for concurrent use.
type Listed struct {
	*View
	listing remote.Listing
}

var (
	_ kv.ReadLister  = (*Listed)(nil)
	_ kv.DirLister   = (*Listed)(nil)
	_ kv.Locator     = (*Listed)(nil)
	_ kv.BatchReader = (*Listed)(nil)
)

const (
	pageEntries = 10_000
	maxPage     = 64 << 20 // bytes
)

// errNotListed means that the answer is no page of a listing.
var errNotListed = errors.New("httpkv: no listing")

// Listed returns a view that lists the keys of v too, or nil if the server does not list
// them. It sends one request.
func (v *View) Listed(ctx context.Context) (*Listed, error) {
	_, err := v.page(ctx, "", url.Values{"limit": {"1"}})
	var status *remote.Error
	switch {
	case errors.Is(err, errNotListed), errors.Is(err, kv.ErrNotFound), errors.As(err, &status) && status.Status != 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &Listed{v, remote.Listing{Name: "server " + v.s.host, Page: v.keysAfter, Valid: validKey}}, nil
}

// page is a page of a listing of zarrdb serve. Names are relative to the directory.
type page struct {
	Path    *string
	Entries []struct{ Name string }
	Next    string
}

// page asks for a page of a directory, "" or with a slash at its end. The error is
// kv.ErrNotFound if nothing is below it, and errNotListed if the server does not list.
func (v *View) page(ctx context.Context, dir string, query url.Values) (p page, err error) {
	for name := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if dir != "" && (name == "" || name == "." || name == "..") {
			return p, kv.ErrNotFound // servers resolve such names, and no key has them
		}
	}
	q := query.Encode()
	if v.s.query != "" {
		q = v.s.query + "&" + q
	}
	err = v.c.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := v.s.request(ctx, http.MethodGet, dir, q)
		if err == nil {
			req.Header.Set("Accept", "application/json")
		}
		return req, err
	}, func(resp *http.Response) error {
		switch {
		case v.s.Missing(resp):
			return kv.ErrNotFound
		case resp.StatusCode != http.StatusOK:
			return v.c.Failed(resp, "")
		case resp.Header.Get("Content-Type") != "application/json":
			return errNotListed
		}
		p = page{}
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxPage)).Decode(&p); err != nil || p.Path == nil || p.Entries == nil {
			return errNotListed
		}
		return nil
	})
	return p, err
}

// keysAfter is the Page of [remote.Listing].
func (v *View) keysAfter(ctx context.Context, q remote.Query) (*remote.Page, error) {
	dir := q.Prefix[:strings.LastIndexByte(q.Prefix, '/')+1]
	query := url.Values{"recursive": {""}, "limit": {strconv.Itoa(pageEntries)}}
	if after, below := strings.CutPrefix(q.After, dir); below && after != "" {
		query.Set("after", after)
	}
	if q.Token != "" {
		query.Set("after", q.Token)
	}
	p, err := v.page(ctx, dir, query)
	if errors.Is(err, kv.ErrNotFound) {
		return &remote.Page{}, nil
	}
	if err != nil {
		return nil, err
	}
	next := &remote.Page{Next: p.Next}
	for _, e := range p.Entries {
		key := dir + e.Name
		if strings.HasPrefix(key, q.Prefix) {
			next.Keys = append(next.Keys, key)
		} else if key > q.Prefix {
			next.Next = ""
			break
		}
	}
	return next, nil
}

// List implements [kv.Lister]. It holds one page.
func (l *Listed) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return l.listing.List(ctx, o)
}

// ListDir implements [kv.DirLister]. It holds one page.
func (l *Listed) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		fail := func(err error) { yield(kv.DirEntry{}, fmt.Errorf("list %s: %w", l.listing.Name, err)) }
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			fail(fmt.Errorf("%w: prefix %.200q of a directory does not end with a slash", kv.ErrInvalidKey, prefix))
			return
		}
		query := url.Values{"limit": {strconv.Itoa(pageEntries)}}
		last := kv.DirEntry{}
		for {
			p, err := l.page(ctx, prefix, query)
			if errors.Is(err, kv.ErrNotFound) {
				return
			}
			if err != nil {
				fail(err)
				return
			}
			for _, e := range p.Entries {
				next := kv.DirEntry{}
				next.Name, next.Prefix = strings.CutSuffix(e.Name, "/")
				if next.Name < last.Name || next.Name == last.Name && (last.Prefix || !next.Prefix) || strings.Contains(next.Name, "/") {
					fail(fmt.Errorf("%w: the entry %.200q after %.200q", remote.ErrAnswer, e.Name, last.Name))
					return
				}
				if last = next; !yield(next, nil) {
					return
				}
			}
			if p.Next == "" {
				return
			}
			if len(p.Entries) == 0 {
				fail(fmt.Errorf("%w: a page without entries before the last", remote.ErrAnswer))
				return
			}
			query.Set("after", p.Next)
		}
	}
}
