package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// SourceOptions say how a URL is opened. nil and the zero value work.
type SourceOptions struct {
	// Adapters resolves URL schemes; nil is [DefaultAdapters].
	Adapters *Adapters
	// Codecs are the codecs of arrays; nil is [source.DefaultCodecs].
	Codecs *codecs.Registry
	// Workers is how many chunks are read at a time; default GOMAXPROCS.
	Workers int
	// CacheBytes bounds decoded chunks in memory; default none, because a
	// source is mostly read once.
	CacheBytes int64
	// Follow says where references may lead.
	Follow Follow
	// Open opens databases; default [Open]. One that this process has open already
	// can be had as a handle, see [DB.Handle].
	Open func(ctx context.Context, dir string, o *Options) (*DB, error)
	// Warn, if set, is called with a text for the user that is not an error. It may be
	// called from several goroutines.
	Warn func(text string)
}

// Source is the object that a URL pipeline names: a file, a directory of keys,
// or a node of a hierarchy. Safe for concurrent use; Close when done.
type Source struct {
	at    source.Place
	open  *zarr.OpenOptions
	pool  *transfer.Pool
	cache *cache.Cache
	env   *source.Env
	// openDB opens databases; see SourceOptions.
	openDB func(ctx context.Context, dir string, o *Options) (*DB, error)

	surveying ctxlock.Lock
	survey    *Survey // once it was made

	mu        sync.Mutex
	databases []string // that keys has left out, sorted

	outer sync.Map // the places that around has opened, by up

	detecting ctxlock.Lock
	detected  *source.Place // where detection has led
	set       *foundSet     // as IsReferenceSet found it
}

// OpenSource opens a URL pipeline (ZEP 8), or a bare path. Formats that the URL
// leaves out are detected when they are needed.
func OpenSource(ctx context.Context, url string, o *SourceOptions) (*Source, error) {
	p, err := zurl.Parse(url)
	if err != nil {
		return nil, err
	}
	s, err := newSource(o)
	if err != nil {
		return nil, err
	}
	s.env.FromPath = zurl.IsPath(url)
	if s.at, err = s.env.Open(ctx, p); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenDatabaseSource opens a node or key of a database: of the version that rev
// names or, if session is not empty, of a stored session as it was last saved.
// path "" is the root.
func OpenDatabaseSource(ctx context.Context, dir, rev, session, path string, o *SourceOptions) (*Source, error) {
	s, err := newSource(o)
	if err != nil {
		return nil, err
	}
	view, err := s.database(ctx, dir, session != "", func(db *DB) (kv.ReadLister, error) {
		if session == "" {
			return db.At(ctx, rev)
		}
		id, err := txn.ParseSessionID(session)
		if err != nil {
			return nil, err
		}
		return db.resumeAlone(ctx, id) // only a writer can take up a session
	})
	if err == nil {
		s.at, err = versionPlace(view, dir, path)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenViewSource opens a node or key of a version of the database in dir that is open
// already, as a view. path "" is the root. The view stays the caller's.
func OpenViewSource(view kv.ReadLister, dir, path string, o *SourceOptions) (*Source, error) {
	s, err := newSource(o)
	if err != nil {
		return nil, err
	}
	s.at, err = versionPlace(view, dir, path)
	return s, err
}

// versionPlace is the place of a node or key in a version of the database in dir.
func versionPlace(view kv.ReadLister, dir, path string) (source.Place, error) {
	u, err := zurl.File(dir)
	return source.Place{URL: u, View: view, Path: names.Clean(path), Database: true, Extent: extent.Extent{Path: dir}}, err
}

func newSource(o *SourceOptions) (*Source, error) {
	var c SourceOptions
	if o != nil {
		c = *o
	}
	base := (&Options{Codecs: c.Codecs, Adapters: c.Adapters, Workers: c.Workers, CacheBytes: max(c.CacheBytes, 0)}).withDefaults()
	base.Follow = c.Follow
	if err := base.check(); err != nil {
		return nil, err
	}
	s := &Source{pool: transfer.NewPool(base.Workers), openDB: c.Open}
	if s.openDB == nil {
		s.openDB = Open
	}
	s.env = &source.Env{Adapters: base.Adapters, Follow: c.Follow, Database: s.version, Warn: c.Warn}
	if c.CacheBytes > 0 {
		s.cache = cache.New(c.CacheBytes)
	}
	s.open = &zarr.OpenOptions{Registry: base.Codecs, Runner: s.pool, Cache: s.cache.ForArrays(), Above: s.above}
	return s, nil
}

// Close closes everything that was opened on the way.
func (s *Source) Close() error {
	err := s.env.Close()
	s.cache.Close()
	return err
}

// URL is the normalised URL, without formats that were detected.
func (s *Source) URL() string { return s.at.URL.String() }

// name is the URL for messages and records, without credentials.
func (s *Source) name() string { return s.at.URL.Redacted() }

// dataset detects formats until the place is a node of a hierarchy, once.
func (s *Source) dataset(ctx context.Context) (source.Place, error) {
	if err := s.detecting.Lock(ctx); err != nil {
		return source.Place{}, err
	}
	defer s.detecting.Unlock()
	if s.detected != nil {
		return *s.detected, nil
	}
	at, err := s.env.Dataset(ctx, s.at)
	if err == nil {
		s.detected = &at
	}
	return at, err
}

// Detect returns the URL with the formats that lead to a node, or to nodes without a group
// above them.
func (s *Source) Detect(ctx context.Context) (string, error) {
	at, err := s.dataset(ctx)
	if err != nil {
		return "", err
	}
	if _, err = s.nodeAt(ctx, at); errors.Is(err, zarr.ErrNotFound) && at.Path == "" {
		var x selection
		if x, err = s.selectionIn(ctx, at, nil); err == nil {
			err = x.holdsNode(ctx)
		}
	}
	if err != nil {
		return "", err
	}
	return at.URL.String(), nil
}

// Node opens the array or group that the URL names.
func (s *Source) Node(ctx context.Context) (*zarr.Node, error) {
	at, err := s.dataset(ctx)
	if err != nil {
		return nil, err
	}
	return s.nodeAt(ctx, at)
}

// NodeAt opens the array or group at a path below the node that the URL names.
func (s *Source) NodeAt(ctx context.Context, path string) (*zarr.Node, error) {
	at, err := s.dataset(ctx)
	if err != nil {
		return nil, err
	}
	at.Path = names.Clean(names.Dir(at.Path) + path)
	return s.nodeAt(ctx, at)
}

// Sibling opens a node by its name beside the one that the URL names, or else in the nearest
// group around it that has one: the coordinates of an array are there. If the URL names an array that is a store of
// its own, it looks into the directory around that store, but not outside of an
// archive or a reference set. A node that is missing is [zarr.ErrNotFound].
func (s *Source) Sibling(ctx context.Context, name string) (*zarr.Node, error) {
	at, err := s.dataset(ctx)
	if err != nil {
		return nil, err
	}
	if at.Path == "" && at.Store != nil {
		at.View, at.Path = policy.WithSeparators(at.Store.View), at.Store.Path
	}
	switch {
	case name == "" || strings.Contains(name, "/"):
		return nil, fmt.Errorf("%s: beside %s: %w", name, s.name(), zarr.ErrNotFound)
	case at.Path != "":
		return nearest(names.Parent(at.Path), func(group string) (*zarr.Node, error) {
			in := at
			in.Path = names.Dir(group) + name
			return s.nodeAt(ctx, in)
		})
	default:
		if at.View, _, err = s.around(ctx, at, "../"); err != nil {
			return nil, fmt.Errorf("%s: beside %s: %w", name, s.name(), err)
		}
		at.Path = name
	}
	return s.nodeAt(ctx, at)
}

// around opens the directory that up, such as "../", names from the root of a store with a URL without
// adapters. It returns the directory and the path of that root in it. The directory is opened once,
// and stays open until the source is closed.
func (s *Source) around(ctx context.Context, at source.Place, up string) (view kv.Reader, root string, err error) {
	if at.Store == nil || len(at.Store.URL.Adapters()) > 0 {
		return nil, "", zarr.ErrNotFound
	}
	own := at.Store.URL.AsDirectory()
	if q := own.Root().Query; q != "" {
		up += "?" + q
	}
	u, err := own.Resolve(up)
	if err != nil {
		return nil, "", zarr.ErrNotFound // it is the root of its file system or server
	}
	root, inside := strings.CutPrefix(own.Root().Path, u.Root().Path)
	out, opened := s.outer.Load(up)
	if !opened {
		at, err := s.env.Open(ctx, u)
		if err == nil && (at.Path != "" || !inside) {
			err = zarr.ErrNotFound
		}
		if err != nil {
			return nil, "", err
		}
		out, _ = s.outer.LoadOrStore(up, at.View)
	}
	return out.(kv.Reader), names.Clean(root), nil
}

// above is zarr.OpenOptions.Above of the store that the URL names: two directories above it, which
// holds a store of OME-Zarr also if the URL names a level in a group of its own.
func (s *Source) above(ctx context.Context) (view kv.Reader, root string, err error) {
	at, err := s.dataset(ctx)
	if err != nil || at.Store == nil {
		return nil, "", cmp.Or(err, error(zarr.ErrNotFound))
	}
	if at.Store.Path != "" {
		return policy.WithSeparators(at.Store.View), at.Store.Path, nil
	}
	if view, root, err = s.around(ctx, at, "../../"); err != nil {
		view, root, err = s.around(ctx, at, "../")
	}
	return view, root, err
}

func (s *Source) nodeAt(ctx context.Context, at source.Place) (*zarr.Node, error) {
	o := *s.open
	o.Version = at.Version
	return zarr.Open(ctx, at.View, at.Path, &o)
}

// openBelow returns how the nodes at and below a place are opened. Their only format is
// the format of the place, if its directory is in another format, too. If not, nodes of
// another format below the place belong to the hierarchy. The caller owns the options.
func (s *Source) openBelow(ctx context.Context, at source.Place) (*zarr.OpenOptions, error) {
	o := *s.open
	var others []string
	switch at.Version {
	case zarr.V2:
		others = []string{names.V3}
	case zarr.V3:
		others = []string{names.V2Array, names.V2Group}
	default:
		o.Version = at.Version
		return &o, nil
	}
	for _, name := range others {
		in, err := kv.Exists(ctx, at.View, names.Dir(at.Path)+name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		if in {
			o.Version = at.Version
		}
	}
	return &o, nil
}

// Store returns the keys that the URL names, of a directory or below a node.
func (s *Source) Store() (kv.ReadLister, error) {
	if s.at.Kind == source.File {
		return nil, fmt.Errorf("%s: %w: it is a file, not a store", s.name(), ErrFormat)
	}
	view, err := s.listable(s.at)
	if err != nil {
		return nil, err
	}
	if s.at.Path == "" {
		return view, nil
	}
	return kv.SubLister(view, names.Dir(s.at.Path)), nil
}

// Hierarchy is [Source.Store], but for a file in a known format, such as a zip, it has the
// keys inside the file.
func (s *Source) Hierarchy(ctx context.Context) (kv.ReadLister, error) {
	store, _, err := s.hierarchy(ctx)
	return store, err
}

// hierarchy is Hierarchy, with the place whose format nodes have.
func (s *Source) hierarchy(ctx context.Context) (kv.ReadLister, source.Place, error) {
	if s.at.Kind != source.File {
		store, err := s.Store()
		return store, s.at, err
	}
	at, err := s.dataset(ctx)
	if err != nil {
		return nil, at, err
	}
	store, err := s.listable(at)
	if err != nil || at.Path == "" {
		return store, at, err
	}
	return kv.SubLister(store, names.Dir(at.Path)), at, nil
}

// Values yields the keys with a prefix in the version of a database that holds the node of the source, with where
// their bytes are. ok is false if no version of a database holds it.
func (s *Source) Values(ctx context.Context, prefix string) (values iter.Seq2[txn.KeyValue, error], ok bool) {
	at, err := s.dataset(ctx)
	if err != nil || !at.Database {
		return nil, false
	}
	view, ok := at.View.(interface {
		Values(ctx context.Context, prefix string) iter.Seq2[txn.KeyValue, error]
	})
	if !ok {
		return nil, false
	}
	return view.Values(ctx, prefix), true
}

// File returns the file that the URL names.
func (s *Source) File(ctx context.Context) (kv.Value, error) {
	v, err := s.at.File(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	return v, nil
}

// listable returns the view that a place is in.
func (s *Source) listable(at source.Place) (kv.ReadLister, error) {
	view, ok := at.View.(kv.ReadLister)
	if !ok {
		return nil, fmt.Errorf("%s: its keys cannot be listed: %w", s.name(), errors.ErrUnsupported)
	}
	return view, nil
}

// selection is the hierarchy that a source names, as it is read and copied.
type selection struct {
	src  *Source
	at   source.Place      // of the topmost node
	view kv.ReadLister     // of the keys; a [listing.View] if only metadata lists them
	open *zarr.OpenOptions // how nodes are opened; its Version is the only format that counts

	prefix string // of the keys
}

// selection returns the hierarchy that the URL names.
func (s *Source) selection(ctx context.Context) (selection, error) {
	at, err := s.dataset(ctx)
	if err != nil {
		return selection{}, err
	}
	view, ok := at.View.(kv.ReadLister)
	if !ok {
		sv, err := s.Survey(ctx)
		if err != nil {
			return selection{}, err
		}
		x, open := sv.selection, *sv.open
		x.open = &open
		return x, nil
	}
	return s.selectionIn(ctx, at, view)
}

// selectionIn is the selection of a place in a view.
func (s *Source) selectionIn(ctx context.Context, at source.Place, view kv.ReadLister) (selection, error) {
	open, err := s.openBelow(ctx, at)
	return selection{src: s, at: at, view: view, open: open, prefix: names.Dir(at.Path)}, err
}

// told reports whether the keys are only computed from metadata: some of them may not exist.
func (x *selection) told() bool {
	_, ok := x.view.(*listing.View)
	return ok
}

// nodes walks the nodes.
func (x *selection) nodes(ctx context.Context) iter.Seq2[*zarr.Node, error] {
	return zarr.Walk(ctx, x.at.View, x.at.Path, x.open)
}

// keys lists the keys that are copied; see wanted. Keys of databases are left out and
// noted. The format file of a database comes before its other files.
func (x *selection) keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		database, prefix, view := "", x.prefix, x.view
		for key, err := range view.List(ctx, kv.ListOptions{Prefix: prefix}) {
			if err == nil && database != "" && strings.HasPrefix(key, database) {
				continue
			}
			if folder, ok := strings.CutSuffix(key, "/"+txn.FormatFile); ok && err == nil && len(folder) >= len(prefix) {
				var head []byte
				if head, _, err = source.Head(ctx, view, key); err == nil && bytes.HasPrefix(head, []byte(txn.FormatWord)) {
					database = folder + "/"
					x.src.leaveOut(folder)
					continue
				}
			}
			if (err != nil || wanted(x.open.Version, key)) && !yield(key, err) {
				return
			}
		}
	}
}

// leaveOut notes that a database is not copied.
func (s *Source) leaveOut(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := slices.BinarySearch(s.databases, path); !ok {
		s.databases = slices.Insert(s.databases, i, path)
	}
}

// leftOut returns the databases that keys has left out.
func (s *Source) leftOut() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.databases)
}

// Damaged marks a problem that a check found as damaged data, whatever the reason.
func Damaged(p txn.Problem) error {
	if errors.Is(p, ErrCorrupt) {
		return p
	}
	return fmt.Errorf("%w: %w", p, kv.ErrCorrupt)
}

// NormalizeURL returns the canonical spelling of a URL pipeline.
func NormalizeURL(url string) (string, error) { return zurl.Normalize(url) }

// ResolveURL resolves a relative URL pipeline against a base.
func ResolveURL(base, relative string) (string, error) { return zurl.Resolve(base, relative) }

// database opens a database until the source is closed, and the view of it that
// pick chooses.
func (s *Source) database(ctx context.Context, dir string, writable bool, pick func(*DB) (kv.ReadLister, error)) (kv.ReadLister, error) {
	// The source reads arrays with a cache and workers of its own.
	db, err := s.openDB(ctx, dir, &Options{ReadOnly: !writable, CacheBytes: -1, Workers: 1, Adapters: s.env.Adapters, Follow: s.env.Follow})
	if err != nil {
		return nil, err
	}
	s.env.OnClose(db.Close)
	return pick(db)
}

// version opens the version that a zarrdb: adapter means.
func (s *Source) version(ctx context.Context, dir string, v zurl.Version) (kv.ReadLister, error) {
	return s.database(ctx, dir, false, func(db *DB) (kv.ReadLister, error) {
		id, err := db.version(ctx, v)
		if err != nil {
			return nil, err
		}
		return db.Snapshot(ctx, id)
	})
}

// version finds the commit that the version of a zarrdb: adapter means.
func (db *DB) version(ctx context.Context, v zurl.Version) (txn.CommitID, error) {
	switch v.Kind {
	case zurl.Branch:
		return db.Head(ctx, v.Name)
	case zurl.Tag:
		_, tags, err := db.Refs(ctx)
		if err != nil {
			return txn.CommitID{}, err
		}
		for _, t := range tags {
			if t.Name == v.Name {
				return t.Commit, nil
			}
		}
		return txn.CommitID{}, fmt.Errorf("tag %q: %w", v.Name, txn.ErrNoRef)
	case zurl.Time:
		return db.Resolve(ctx, "@{"+v.Name+"}")
	}
	return db.Resolve(ctx, v.Name)
}
