package ocdbt

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

const (
	manifestName = "manifest.ocdbt"
	numberedName = "manifest." // and 16 digits

	cacheBytes = 64 << 20

	// Bounds of a node of the B+tree, in memory. The configuration may allow less.
	leastNode = 4 << 20
	mostNode  = 256 << 20
)

// store is the state that the sets of all generations share.
type store struct {
	files kv.Reader
	*manifest
	nodes   *lru.Cache[place, *node]
	older   *lru.Cache[place, *versionNode]
	skipped func(key string)
}

// place names a node in the caches.
type place struct {
	path   string
	base   int
	off, n uint64
}

func placeOf(l *location) place { return place{l.file.path, l.file.base, l.off, l.n} }

// openStore reads the manifest.
func openStore(ctx context.Context, files kv.Reader, skipped func(string)) (*store, error) {
	m, err := readManifest(ctx, files, manifestName)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: there is no %s", formats.ErrFormat, manifestName)
	}
	if err == nil && m.numbered {
		m, err = newestManifest(ctx, files, m)
	}
	if err != nil {
		return nil, err
	}
	if skipped == nil {
		skipped = func(string) {}
	}
	return &store{
		files: files, manifest: m, skipped: skipped,
		nodes: lru.New[place](cacheBytes, (*node).size),
		older: lru.New[place](cacheBytes/8, (*versionNode).size),
	}, nil
}

// readManifest returns kv.ErrNotFound, wrapped or not, only if there is no such file.
func readManifest(ctx context.Context, files kv.Reader, name string) (*manifest, error) {
	b, err := files.Get(ctx, name, kv.AtMost(maxManifest))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// newestManifest reads the numbered manifest with the highest number. Writers remove
// older ones, perhaps meanwhile.
func newestManifest(ctx context.Context, files kv.Reader, of *manifest) (*manifest, error) {
	l, ok := files.(kv.Lister)
	if !ok {
		return nil, formats.Unsupported("OCDBT: numbered manifests where files cannot be listed, as on a web server")
	}
	for tries := 0; ; tries++ {
		newest := ""
		for name, err := range l.List(ctx, kv.ListOptions{Prefix: numberedName}) {
			if errors.Is(err, errors.ErrUnsupported) {
				return nil, formats.Unsupported("OCDBT: numbered manifests where files cannot be listed, as on a web server")
			}
			if err != nil {
				return nil, err
			}
			if manifestNumber(name) > 0 {
				newest = name
			}
		}
		if newest == "" {
			return of, nil // a store without generations
		}
		m, err := readManifest(ctx, files, newest)
		if errors.Is(err, kv.ErrNotFound) && tries < 10 {
			continue
		}
		switch {
		case err != nil:
			return nil, err
		case m.numbered:
			return nil, fmt.Errorf("%s: %w", newest, formats.Invalid("it has no generations"))
		case m.versions[len(m.versions)-1].number != manifestNumber(newest):
			return nil, fmt.Errorf("%s: %w", newest, formats.Invalid("its newest generation is %d", m.versions[len(m.versions)-1].number))
		}
		return m, nil
	}
}

// manifestNumber returns the generation in the name of a numbered manifest, else 0.
func manifestNumber(name string) uint64 {
	digits, ok := strings.CutPrefix(name, numberedName)
	if !ok || len(digits) != 16 || strings.ToLower(digits) != digits {
		return 0
	}
	n, _ := strconv.ParseUint(digits, 16, 64)
	return n
}

// nodeLimit bounds a node in memory. tensorstore counts more than is stored.
func (s *store) nodeLimit() int {
	if s.maxNode == 0 || s.maxNode > mostNode/2 {
		return mostNode
	}
	return max(leastNode, 2*int(s.maxNode))
}

// read returns the bytes of a node.
func (s *store) read(ctx context.Context, l *location, limit int) ([]byte, error) {
	path, err := l.file.key()
	if err != nil {
		return nil, err
	}
	if l.n > uint64(limit) {
		return nil, formats.Invalid("%d bytes, more than %d", l.n, limit)
	}
	b, err := s.files.Get(ctx, path, kv.Span(int64(l.off), int64(l.n)))
	switch {
	case errors.Is(err, kv.ErrNotFound): // hidden: no key is missing
		return nil, formats.Invalid("the file does not exist")
	case errors.Is(err, kv.ErrRange):
		return nil, formats.Invalid("the file is too short")
	case err == nil && uint64(len(b)) != l.n:
		return nil, formats.Invalid("the file is too short")
	}
	return b, err
}

// key is the key of a data file among the files of the store.
func (f dataFile) key() (string, error) {
	if !refs.Storable(f.path) || strings.Contains(f.path, "://") || strings.HasPrefix(f.path, "file:/") ||
		len(f.path) > 1 && f.path[1] == ':' {
		return "", formats.Unsupported("OCDBT: the data file %s, which is not below the store", quote(f.path))
	}
	return f.path, nil
}

// node returns a node of the B+tree. height and first are as in [node.check].
func (s *store) node(ctx context.Context, l *location, height uint8, first []byte) (*node, error) {
	n, err := s.nodes.Get(ctx, placeOf(l), func() (*node, error) {
		b, err := s.read(ctx, l, s.nodeLimit())
		if err != nil {
			return nil, err
		}
		return decodeNode(b, l.file.transitive(), s.nodeLimit())
	})
	if err == nil {
		err = n.check(height, first)
	}
	if err != nil {
		return nil, l.wrap("node", err)
	}
	return n, nil
}

// versionNode returns a node of the version tree.
func (s *store) versionNode(ctx context.Context, ref versionRef) (*versionNode, error) {
	v, err := s.older.Get(ctx, placeOf(&ref.location), func() (*versionNode, error) {
		b, err := s.read(ctx, &ref.location, maxVersionNode)
		if err != nil {
			return nil, err
		}
		return decodeVersionNode(b, s.arityLog2, ref)
	})
	if err != nil {
		return nil, ref.wrap("node of the version tree", err)
	}
	return v, nil
}

func (l *location) wrap(what string, err error) error {
	return fmt.Errorf("ocdbt: %s at byte %d of %s: %w", what, l.off, quote(l.file.path), err)
}

// quote prints a key for a message, cut where it is long.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}
