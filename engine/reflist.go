package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/refs"
)

// Referred is a file that references name.
type Referred struct {
	// URL is the URL of the file. If there are too many files to list each, it ends in "/"
	// and stands for all files below a folder.
	URL string
	// Prefix is the widest prefix of URL that is usually allowed: a bucket, a host, or the
	// folder of a file of this machine.
	Prefix string
	// References counts all references to the file, Whole only the references to the whole
	// file. Bytes is the total length of the other references; a range that two references
	// share counts twice.
	References, Whole, Bytes int64
}

// maxReferred bounds the files that [Source.Referred] lists.
const maxReferred = 1 << 16

// Referred lists the files that references at and below the source's path name, sorted by
// prefix and URL. The source is a version of a database or a reference set. The files are
// not opened. Memory is bounded: beyond 65,536 files, the files in the deepest folders are
// counted by folder; an error says that even so there are too many. progress may be nil.
func (s *Source) Referred(ctx context.Context, progress func(Progress)) ([]Referred, error) {
	list, _, err := s.references(ctx)
	if err != nil {
		return nil, err
	}
	var meter transfer.Meter
	c := referredCounts{known: map[string]*Referred{}, most: maxReferred}
	for ref, err := range list {
		if err == nil {
			err = c.add(&ref)
		}
		if err != nil {
			return nil, err
		}
		meter.AddMany(1, 0, progress)
	}
	out := make([]Referred, 0, len(c.known))
	for url, r := range c.known {
		r.Prefix = refs.Origin(url)
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Referred) int {
		return cmp.Or(strings.Compare(a.Prefix, b.Prefix), strings.Compare(a.URL, b.URL))
	})
	return out, nil
}

// referredCounts counts references by file.
type referredCounts struct {
	known  map[string]*Referred // by URL
	most   int                  // of known
	folded bool                 // some are folders
	last   *Referred            // of the reference before
}

func (c *referredCounts) add(ref *reference) error {
	r := c.last
	if r == nil || r.URL != ref.src.URL {
		if r = c.of(ref.src.URL); r == nil {
			return errors.New("references name files below too many hosts and schemes to list")
		}
		c.last = r
	}
	if r.References++; ref.src.Whole {
		r.Whole++
	} else {
		r.Bytes += int64(min(ref.length, uint64(math.MaxInt64-r.Bytes)))
	}
	return nil
}

// of returns the counts of a file or of a folder above the file, nil if there is no room.
func (c *referredCounts) of(url string) *Referred {
	if r := c.known[url]; r != nil {
		return r
	}
	for {
		for dir := folderOf(url); c.folded && dir != ""; dir = folderOf(dir) {
			if r := c.known[dir]; r != nil {
				return r
			}
		}
		if len(c.known) < c.most {
			url = strings.Clone(url)
			r := &Referred{URL: url}
			c.known[url] = r
			return r
		}
		if !c.fold() {
			return nil
		}
	}
}

// fold counts the files in the deepest folders by folder. It returns false if no file lies
// in a folder.
func (c *referredCounts) fold() bool {
	depth := func(url string) int { return strings.Count(folderOf(url), "/") }
	deepest := 0
	for url := range c.known {
		deepest = max(deepest, depth(url))
	}
	if deepest == 0 {
		return false
	}
	for url, r := range maps.Clone(c.known) {
		if depth(url) != deepest {
			continue
		}
		delete(c.known, url)
		dir := folderOf(url)
		into := c.known[dir]
		if into == nil {
			into = &Referred{URL: dir}
			c.known[dir] = into
		}
		into.References += r.References
		into.Whole += r.Whole
		into.Bytes += min(r.Bytes, math.MaxInt64-into.Bytes)
	}
	c.folded, c.last = true, nil
	return true
}

// folderOf returns the folder that a file or folder lies in, with "/" at the end. A host lies
// in its scheme, such as "s3://", and a scheme in no folder: the result is "".
func folderOf(url string) string {
	if strings.HasSuffix(url, "://") {
		return ""
	}
	return url[:strings.LastIndexByte(strings.TrimSuffix(url, "/"), '/')+1]
}
