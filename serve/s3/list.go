package s3

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

const (
	// maxPage bounds the entries of a page of a listing.
	maxPage = 1000
	// maxSkip bounds the keys below a common prefix that are read one by one. Then the
	// listing begins again behind the prefix.
	maxSkip = 256
	// afterAll comes after every key, in UTF-8.
	afterAll = "\xff"
)

// lister fills one page, in the order of bytes.
type lister struct {
	c             *call
	prefix, delim string
	after         string // names up to this one were listed
	group         string // a common prefix that was listed; "" without one
	left          int
	last          string
	encode        func(string) string
	versions      bool
	out           *listXML
}

// list answers both versions of the listing of objects. At the root it lists versions: the
// branches and tags, and the revision that the prefix names, if it is another one.
func (c *call) list() error {
	l, err := c.lister("ListBucketResult")
	if err != nil {
		return err
	}
	if c.q.Get("list-type") != "2" {
		l.after = c.q.Get("marker")
		l.out.Marker = new(l.encode(l.after))
		if err := l.fill(); err != nil {
			return err
		}
		if l.out.IsTruncated {
			l.out.NextMarker = new(l.encode(l.last))
		}
		return c.send(http.StatusOK, l.out)
	}
	if c.q.Has("start-after") {
		l.after = c.q.Get("start-after")
		l.out.StartAfter = new(l.encode(l.after))
	}
	if token := c.q.Get("continuation-token"); token != "" {
		name, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return invalid("the continuation token is not one of this server")
		}
		l.after, l.out.ContinuationToken = string(name), &token
	}
	if err := l.fill(); err != nil {
		return err
	}
	if l.out.IsTruncated {
		l.out.NextContinuationToken = new(base64.RawURLEncoding.EncodeToString([]byte(l.last)))
	}
	l.out.KeyCount = new(len(l.out.Contents) + len(l.out.CommonPrefixes))
	return c.send(http.StatusOK, l.out)
}

// listVersions lists objects, each as its only version.
func (c *call) listVersions() error {
	l, err := c.lister("ListVersionsResult")
	if err != nil {
		return err
	}
	l.after, l.versions = c.q.Get("key-marker"), true
	l.out.KeyMarker = new(l.encode(l.after))
	if err := l.fill(); err != nil {
		return err
	}
	if l.out.IsTruncated {
		l.out.NextKeyMarker = new(l.encode(l.last))
	}
	return c.send(http.StatusOK, l.out)
}

// lister parses the parameters that all listing requests share.
func (c *call) lister(name string) (*lister, error) {
	l := &lister{c: c, prefix: c.q.Get("prefix"), delim: c.q.Get("delimiter"), left: maxPage, encode: func(s string) string { return s }}
	if text := c.q.Get("max-keys"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, invalid("max-keys is a number of entries")
		}
		l.left = min(n, maxPage)
	}
	switch c.q.Get("encoding-type") {
	case "":
	case "url":
		l.encode = serve.EscapePath
	default:
		return nil, invalid("encoding-type is url, or not set")
	}
	l.out = &listXML{XMLName: named(name), Name: c.bucket, Prefix: l.encode(l.prefix), Delimiter: l.encode(l.delim), MaxKeys: l.left, EncodingType: c.q.Get("encoding-type")}
	return l, c.exists()
}

// fill fills the page.
func (l *lister) fill() error {
	if l.left == 0 {
		return nil
	}
	if cp, ok := l.commonPrefix(l.after); ok && cp == l.after {
		l.group = cp
	}
	names, err := l.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		base := name + "/"
		if l.passed(base) {
			continue
		}
		if cp, ok := l.commonPrefix(base); ok {
			if !l.add(cp) {
				return nil
			}
			continue
		}
		if more, err := l.keys(name); err != nil || !more {
			return err
		}
	}
	return nil
}

// passed reports whether all names that begin with base were listed.
func (l *lister) passed(base string) bool {
	return l.group != "" && strings.HasPrefix(base, l.group) || l.after > base && !strings.HasPrefix(l.after, base)
}

// commonPrefix returns the common prefix that a name belongs to.
func (l *lister) commonPrefix(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, l.prefix)
	if i := strings.Index(rest, l.delim); ok && l.delim != "" && i >= 0 {
		return name[:len(l.prefix)+i+len(l.delim)], true
	}
	return "", false
}

// names are the versions whose keys may begin with the prefix, escaped, in the order of
// their keys. Tags mostly have the keys of branches, and are left out where all keys of
// all versions would be listed.
func (l *lister) names() ([]string, error) {
	first, _, below := strings.Cut(l.prefix, "/")
	if below {
		return []string{first}, nil
	}
	branches, err := l.c.t.Versions(l.c.ctx, l.c.bucket, false)
	if err != nil {
		return nil, err
	}
	all, err := l.c.t.Versions(l.c.ctx, l.c.bucket, true)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		_, grouped := l.commonPrefix(url.PathEscape(name) + "/")
		if strings.HasPrefix(url.PathEscape(name), first) && (grouped || slices.Contains(branches, name)) {
			names = append(names, url.PathEscape(name))
		}
	}
	if first != "" && !slices.Contains(names, first) {
		if v, _, err := l.c.view(l.c.bucket, first+"/"); err == nil {
			v.Release()
			names = append(names, first)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a+"/", b+"/") })
	return names, nil
}

// room reports whether the page takes a name; if not, it is truncated.
func (l *lister) room(name string) bool {
	if l.left == 0 {
		l.out.IsTruncated = true
		return false
	}
	l.left--
	l.last = name
	return true
}

// add adds a common prefix; false ends the page.
func (l *lister) add(cp string) bool {
	if !l.room(cp) {
		return false
	}
	l.group = cp
	l.out.CommonPrefixes = append(l.out.CommonPrefixes, prefixXML{l.encode(cp)})
	return true
}

// keys lists the keys of a version; more is false at the end of the page.
func (l *lister) keys(name string) (more bool, err error) {
	v, _, err := l.c.view(l.c.bucket, name+"/")
	if errors.Is(err, txn.ErrNoRef) {
		return true, nil // a missing version has no keys
	}
	if err != nil {
		return false, err
	}
	defer v.Release()
	base := name + "/"
	o := kv.ListOptions{}
	o.Prefix, _ = strings.CutPrefix(l.prefix, base)
	if strings.HasPrefix(base, l.prefix) {
		o.Prefix = ""
	}
	if after, ok := strings.CutPrefix(l.after, base); ok {
		o.After = after
	}
	for again := true; again; {
		again = false
		if group, ok := strings.CutPrefix(l.group, base); ok && group+afterAll > o.After {
			o.After = group + afterAll
		}
		skipped := 0
		for key, err := range v.List(l.c.ctx, o) {
			if err != nil {
				return false, err
			}
			full := base + key
			if l.group != "" && strings.HasPrefix(full, l.group) {
				if strings.HasPrefix(base, l.group) {
					return true, nil
				}
				if skipped++; skipped > maxSkip {
					again = true
					break
				}
				continue
			}
			if cp, ok := l.commonPrefix(full); ok {
				if !l.add(cp) {
					return false, nil
				}
				skipped = 0
				continue
			}
			f, err := l.c.in(v, key)
			if notFound(err) {
				continue
			}
			if err != nil {
				return false, fmt.Errorf("%s: %w", full, err)
			}
			if !l.room(full) {
				return false, nil
			}
			item := contentXML{Key: l.encode(full), Size: f.val.Size(), ETag: f.tag, LastModified: stamp(f.at), StorageClass: "STANDARD"}
			if l.versions {
				item.VersionID, item.IsLatest = "null", true
				l.out.Version = append(l.out.Version, item)
				continue
			}
			if !l.c.q.Has("list-type") || l.c.q.Get("fetch-owner") == "true" {
				item.Owner = owner
			}
			l.out.Contents = append(l.out.Contents, item)
		}
	}
	return true, nil
}
