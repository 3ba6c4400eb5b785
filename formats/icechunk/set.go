package icechunk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// Format returns the format icechunk: a directory with a repository.
func Format() formats.Format {
	return formats.Format{
		Scheme:    "icechunk",
		Directory: true,
		Store:     true,
		Open: func(ctx context.Context, base formats.Base, o formats.Options) (refs.Set, error) {
			return Open(ctx, base.Files, o.Version)
		},
		Detect: isRepository,
		Files:  []string{infoKey, mainRef},
		Create: func(ctx context.Context, files formats.Files) (formats.Writer, error) {
			return Create(ctx, files)
		},
	}
}

// isRepository reports whether a directory has the file of a repository: of version 2,
// or the branch that each of version 1 has.
func isRepository(e formats.Evidence) bool {
	return strings.HasPrefix(string(e.File(infoKey)), magic) || strings.Contains(string(e.File(mainRef)), `"snapshot"`)
}

// Set is a snapshot of a repository as a reference set: the documents zarr.json, and
// chunks under the keys that their array says. Safe for concurrent use.
type Set struct {
	repo    *repository
	snap    *snapshot
	version formats.Version

	listing sync.Once
	listed  []listItem
}

var (
	_ formats.Versioned = (*Set)(nil)
	_ kv.DirLister      = (*Set)(nil)
)

// Open opens a version of the repository in a directory, which must be readable as
// long as the set is used: "branch.NAME", "tag.NAME" or the id of a snapshot; "" is the
// branch main. It reads the snapshot, and of chunks nothing. A missing version is
// formats.ErrNoVersion, a directory without repository formats.ErrFormat.
func Open(ctx context.Context, files kv.Reader, version string) (*Set, error) {
	repo, err := openRepository(ctx, files)
	if err != nil {
		return nil, err
	}
	id, err := repo.resolve(ctx, version)
	if err == nil {
		var s *Set
		if s, err = repo.at(ctx, id); err == nil {
			return s, nil
		}
		if _, named := parseID(version); errors.Is(err, formats.ErrNoVersion) && !named {
			return nil, fmt.Errorf("icechunk: %w", formats.Invalid("%s is snapshot %v, which is not there", cmp.Or(version, branchOf+defaultBranch), id))
		}
	}
	if repo.info == nil && errors.Is(err, formats.ErrNoVersion) {
		// Without the branch that every repository has, it is no repository.
		if _, mainErr := repo.resolve(ctx, ""); errors.Is(mainErr, formats.ErrNoVersion) {
			return nil, fmt.Errorf("icechunk: %w: there is neither %q nor %q", formats.ErrFormat, infoKey, mainRef)
		}
	}
	if errors.Is(err, formats.ErrNoVersion) {
		if some := repo.someVersions(ctx); some != "" {
			err = fmt.Errorf("%w; there are %s", err, some)
		}
	}
	return nil, err
}

func (r *repository) at(ctx context.Context, id objectID) (*Set, error) {
	snap, err := r.snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := r.version(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Set{repo: r, snap: snap, version: v}, nil
}

const document = "zarr.json"

func (s *Set) Lookup(ctx context.Context, key string) (refs.Reference, error) {
	if path, ok := strings.CutSuffix(key, document); ok && (path == "" || path[len(path)-1] == '/') {
		if n := s.snap.node(strings.TrimSuffix(path, "/")); n != nil && path == n.dir() {
			return refs.Reference{Data: slices.Clone(n.document)}, nil
		}
		return refs.Reference{}, kv.ErrNotFound
	}
	// No node lies below an array, so at most one has the key.
	for path := key; path != ""; {
		path = above(path)
		n := s.snap.node(path)
		if n == nil {
			continue
		}
		if coords, ok := n.keys.parse(key[len(n.dir()):]); ok && n.array {
			return s.chunk(ctx, n, coords)
		}
		break
	}
	return refs.Reference{}, kv.ErrNotFound
}

// above is the path of the group above, "" for the root.
func above(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// chunk finds the reference of a chunk.
func (s *Set) chunk(ctx context.Context, n *node, coords []uint32) (refs.Reference, error) {
	if n.keys.v2 && len(n.covers) > 0 && n.covers[0].extents.n == 0 && slices.Equal(coords, []uint32{0}) {
		coords = nil // the key of the one chunk of an array without dimensions
	}
	r, ok, err := s.place(ctx, n, coords)
	if err == nil && !ok {
		err = kv.ErrNotFound
	}
	return r, err
}

// parse reads the coordinates of a chunk from its key below the array, in the only
// spelling that they have.
func (k chunkKeys) parse(key string) ([]uint32, bool) {
	if k.v2 {
		return parseCoords(key, k.separator)
	}
	rest, ok := strings.CutPrefix(key, "c")
	if !ok {
		return nil, false
	}
	if rest == "" {
		return []uint32{}, true
	}
	if rest[0] != k.separator {
		return nil, false
	}
	return parseCoords(rest[1:], k.separator)
}

func parseCoords(s string, separator byte) ([]uint32, bool) {
	coords := make([]uint32, 0, 4)
	for name := range strings.SplitSeq(s, string(separator)) {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil || len(name) > 1 && name[0] == '0' || name[0] == '+' || len(coords) == maxDims {
			return nil, false
		}
		coords = append(coords, uint32(n))
	}
	return coords, true
}

// append writes the key of a chunk below the array.
func (k chunkKeys) append(dst []byte, coords []uint32) []byte {
	if !k.v2 {
		dst = append(dst, 'c')
	} else if len(coords) == 0 {
		return append(dst, '0')
	}
	for d, x := range coords {
		if d > 0 || !k.v2 {
			dst = append(dst, k.separator)
		}
		dst = strconv.AppendUint(dst, uint64(x), 10)
	}
	return dst
}

// dir is the path of a node as the prefix of its keys.
func (n *node) dir() string {
	if n.path == "" {
		return ""
	}
	return n.path + "/"
}

// Entries implements [refs.Set]. Chunks come manifest by manifest.
func (s *Set) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for i := range s.snap.nodes {
			n := &s.snap.nodes[i]
			if !yield(refs.Entry{Key: n.dir() + document, Reference: refs.Reference{Data: slices.Clone(n.document)}}, nil) {
				return
			}
			if !n.array {
				continue
			}
			err := s.eachChunk(ctx, n, nil, func(coords []uint32, m *manifest, t table) error {
				e := refs.Entry{Key: n.key(coords)}
				var err error
				if e.Reference, err = m.reference(t, s.repo.containers); err != nil {
					return err
				}
				if !yield(e, nil) {
					return errStop
				}
				return nil
			})
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(refs.Entry{}, err)
				return
			}
		}
	}
}

// errStop ends an iteration that its caller has enough of.
var errStop = errors.New("icechunk: enough")

// eachChunk calls fn for each chunk of an array once, in no order, until it returns an
// error. Manifests of which wanted is false are left out; nil wants all.
func (s *Set) eachChunk(ctx context.Context, n *node, wanted func(coverage) bool, fn func(coords []uint32, m *manifest, t table) error) error {
	for i, c := range n.covers {
		if wanted != nil && !wanted(c) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := s.repo.manifest(ctx, c.manifest)
		if err != nil {
			return err
		}
		// Extents may not overlap. If they do, the first manifest counts, as in Lookup.
		var before []coverage
		for _, other := range n.covers[:i] {
			if other.overlaps(c) {
				before = append(before, other)
			}
		}
		calls := 0
		err = m.each(n.id, func(coords []uint32, t table) error {
			if calls++; calls%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if !c.contains(coords) {
				return nil
			}
			for _, other := range before {
				if !other.contains(coords) {
					continue
				}
				first, err := s.repo.manifest(ctx, other.manifest)
				if err != nil {
					return err
				}
				if _, ok, err := first.seek(n.id, coords); ok || err != nil {
					return err
				}
			}
			return fn(coords, m, t)
		})
		if err != nil {
			if errors.Is(err, formats.ErrFormat) {
				err = badManifest(c.manifest, err)
			}
			return err
		}
	}
	return nil
}
