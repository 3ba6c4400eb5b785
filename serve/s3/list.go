package s3

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rclone/gofakes3"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// maxPage bounds the entries of a page of a listing.
const maxPage = 1000

// ListBucket implements [gofakes3.Backend]. At the root it lists versions: the
// branches and tags, and the revision that the prefix names, if it is another
// one.
func (b backend) ListBucket(ctx context.Context, bucket string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage) (*gofakes3.ObjectList, error) {
	if prefix == nil {
		prefix = &gofakes3.Prefix{}
	}
	if prefix.Delimiter != "" && prefix.Delimiter != "/" {
		return nil, gofakes3.ErrorMessage(gofakes3.ErrNotImplemented, "the delimiter of a listing is / or none")
	}
	l := &lister{b: b, ctx: ctx, bucket: bucket, after: page.Marker, left: maxPage, out: gofakes3.NewObjectList()}
	if page.MaxKeys > 0 {
		l.left = min(page.MaxKeys, maxPage)
	}
	first, rest, below := strings.Cut(prefix.Prefix, "/")
	var err error
	switch {
	case below:
		err = l.version(first, rest, prefix.Delimiter != "")
		if errors.Is(err, txn.ErrNoRef) {
			err = nil // a missing version has no keys
		}
	case prefix.Delimiter != "":
		var names []string
		if names, err = l.names(first, true); err == nil {
			for _, name := range names {
				if !l.prefix(name + "/") {
					break
				}
			}
		}
	default:
		var names []string
		if names, err = l.names(first, false); err == nil {
			for _, name := range names {
				if err = l.version(name, "", false); err != nil || l.out.IsTruncated {
					break
				}
			}
		}
	}
	if err != nil {
		return nil, b.fail(bucket, prefix.Prefix, err)
	}
	return l.out, nil
}

// lister fills one page.
type lister struct {
	b      backend
	ctx    context.Context
	bucket string
	after  string // entries up to this one were listed before
	left   int64
	out    *gofakes3.ObjectList
	last   string
}

// names are the versions that begin with a prefix, escaped, in order. A listing
// of all keys leaves out tags, which mostly have the keys of branches.
func (l *lister) names(prefix string, tags bool) ([]string, error) {
	all, err := l.b.h.t.Versions(l.bucket, tags)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		if name = url.PathEscape(name); strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	if prefix != "" && !slices.Contains(names, prefix) {
		if v, _, err := l.b.view(l.ctx, l.bucket, prefix+"/"); err == nil {
			v.Release()
			names = append(names, prefix)
		}
	}
	slices.Sort(names) // escapes have another order
	return names, nil
}

// room reports whether an entry belongs to this page; if it belongs to the next,
// the page is marked as truncated.
func (l *lister) room(name string) (use, more bool) {
	if l.after != "" && !later(name, l.after) {
		return false, true
	}
	if l.left == 0 {
		l.out.IsTruncated, l.out.NextMarker = true, l.last
		return false, false
	}
	l.left--
	l.last = name
	return true, true
}

// later reports whether a name comes after another in a listing: a directory after a
// key of its name and before keys that its name begins.
func later(name, than string) bool {
	a, b := strings.Split(strings.TrimSuffix(name, "/"), "/"), strings.Split(strings.TrimSuffix(than, "/"), "/")
	if c := slices.Compare(a, b); c != 0 {
		return c > 0
	}
	return strings.HasSuffix(name, "/") && !strings.HasSuffix(than, "/")
}

// prefix adds a common prefix; false ends the page.
func (l *lister) prefix(name string) bool {
	use, more := l.room(name)
	if use {
		l.out.AddPrefix(name)
	}
	return more
}

// version lists keys of a version that begin with a prefix.
func (l *lister) version(name, prefix string, delimited bool) error {
	v, _, err := l.b.view(l.ctx, l.bucket, name+"/")
	if err != nil {
		return err
	}
	defer v.Release()
	if !delimited {
		return l.keys(v, name, prefix)
	}
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	for e, err := range kv.ListDir(l.ctx, v, dir) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(e.Name, prefix[len(dir):]) {
			continue
		}
		full := name + "/" + dir + e.Name
		if e.Prefix {
			if !l.prefix(full + "/") {
				return nil
			}
			continue
		}
		if use, more := l.room(full); !more {
			return nil
		} else if use {
			if err := l.content(v, full, dir+e.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// keys lists all keys, in the order of their bytes.
func (l *lister) keys(v *serve.View, name, prefix string) error {
	o := kv.ListOptions{Prefix: prefix}
	if after, ok := strings.CutPrefix(l.after, name+"/"); ok {
		o.After = after
	} else if l.after > name+"/" {
		return nil // every key was listed
	}
	for key, err := range v.List(l.ctx, o) {
		if err != nil {
			return err
		}
		if l.left == 0 {
			l.out.IsTruncated, l.out.NextMarker = true, l.last
			return nil
		}
		l.left--
		l.last = name + "/" + key
		if err := l.content(v, l.last, key); err != nil {
			return err
		}
	}
	return nil
}

// content adds an object.
func (l *lister) content(v *serve.View, name, key string) error {
	val, err := v.Value(l.ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	var id kv.ID
	if err == nil {
		id, err = serve.ContentID(l.ctx, val)
	}
	var at time.Time
	if err == nil {
		at, err = l.b.modified(l.ctx, v, key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l.out.Add(&gofakes3.Content{Key: name, Size: val.Size(), ETag: quoted(id),
		LastModified: gofakes3.NewContentTime(at), StorageClass: gofakes3.StorageStandard})
	return nil
}
