package txn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// remotesDir has a directory for each bucket that a database has been pushed to, or pulled from:
//
//	state       what is known of the bucket; no credentials
//	cache/      indexes of bundles, and which payloads of awayDir were verified
//	uploaded    what a push has uploaded, until it is published
//	incoming/   what a pull has fetched, until it is in the database; incoming.lock is locked meanwhile
//	outgoing/   what a push of a lazy clone has fetched, until it is pushed
//
// All of it may be removed: then it is found out anew.
const remotesDir = "remotes"

// bucketState is what a database remembers of a bucket. Errors of its files are ignored: they cost requests.
type bucketState struct {
	bucketStored

	dir      string // "" without files
	incoming string

	mu      sync.Mutex
	journal *os.File
	extents map[pack.ID][]depot.Extent
}

// bucketStored is the content of the file.
type bucketStored struct {
	URL    string       `json:"url"`
	Cloned bool         `json:"cloned,omitempty"` // the database came from there
	Probed bool         `json:"probed,omitempty"` // the store keeps its promises
	Known  *depot.State `json:"known,omitempty"`
	// Refs are the branches and tags of the bucket as of the last transfer.
	Refs map[string]depot.ID `json:"refs,omitempty"`
	// Mirrored names the manifest whose refs a clone of a [BucketCache] has.
	Mirrored string `json:"mirrored,omitempty"`
}

// bucketDir is where the state of a bucket is.
func bucketDir(fs index.FS, dir, name string) string {
	sum := digest.Of([]byte(name))
	return fs.PathJoin(dir, remotesDir, sum.String()[:16])
}

// loadBucketState reads the state of a bucket. dir is the database, "" if there is none yet. dry says that nothing is to be written.
func loadBucketState(fs index.FS, dir, name string, dry bool) (*bucketState, error) {
	s := &bucketState{bucketStored: bucketStored{URL: name}}
	if dir == "" {
		return s, nil
	}
	s.incoming = fs.PathJoin(bucketDir(fs, dir, name), "incoming")
	if fs != index.DefaultFS {
		return s, nil
	}
	s.dir = bucketDir(fs, dir, name)
	if !dry {
		_ = os.MkdirAll(s.dir, 0o777)
	}
	if b, err := os.ReadFile(filepath.Join(s.dir, "state")); err == nil {
		if json.Unmarshal(b, &s.bucketStored) != nil || s.URL != name {
			s.bucketStored = bucketStored{URL: name}
		}
	}
	if dry {
		s.dir = ""
	}
	return s, nil
}

// reread is what the file has now, which another process may have written.
func (s *bucketState) reread() (now bucketStored) {
	if b, err := os.ReadFile(filepath.Join(s.dir, "state")); s.dir == "" || err != nil || json.Unmarshal(b, &now) != nil {
		return bucketStored{}
	}
	return now
}

// movedTo makes the state that of a new database, which was cloned.
func (s *bucketState) movedTo(fs index.FS, dir string) {
	if fs == index.DefaultFS {
		s.dir, s.Cloned = bucketDir(fs, dir, s.URL), true
		_ = os.MkdirAll(s.dir, 0o777)
	}
}

func (s *bucketState) save() {
	if s.dir == "" {
		return
	}
	now := s.reread() // another process may write it at the same time
	s.Cloned, s.Probed = s.Cloned || now.Cloned, s.Probed || now.Probed
	if b, err := json.Marshal(s.bucketStored); err == nil {
		_ = index.ReplaceSmall(index.DefaultFS, s.dir, "state", append(b, '\n'))
	}
}

// cache is where indexes are kept, nil for memory alone.
func (s *bucketState) cache() kv.Store {
	if s.dir == "" {
		return nil
	}
	dir := filepath.Join(s.dir, "cache")
	_ = os.MkdirAll(dir, 0o777)
	return fileCache{dir: dir}
}

// fileCache is a [depot.Options] Cache of files.
type fileCache struct {
	kv.Store // nil
	dir      string
}

func (c fileCache) Get(_ context.Context, key string, _ kv.Range) ([]byte, error) {
	return os.ReadFile(filepath.Join(c.dir, key))
}

func (c fileCache) Set(_ context.Context, key string, value []byte) error {
	return index.ReplaceSmall(index.DefaultFS, c.dir, key, value)
}

// savedCache is a fileCache that nothing is put into.
type savedCache struct{ fileCache }

func (savedCache) Set(context.Context, string, []byte) error { return kv.ErrReadOnly }

// tidy removes cached indexes that the manifest does not list.
func (s *bucketState) tidy(m *depot.Manifest) {
	if s.dir == "" {
		return
	}
	list, _ := os.ReadDir(filepath.Join(s.dir, "cache"))
	for _, e := range list {
		name, ok := depot.ParseName(e.Name())
		if ok && !slices.ContainsFunc(m.Bundles, func(b depot.BundleInfo) bool { return b.Name == name }) {
			_ = os.Remove(filepath.Join(s.dir, "cache", e.Name()))
		}
	}
}

// journalHead says which directory uploaded what, and to which bucket: a copy of the directory may have other
// bytes at the same places.
type journalHead struct {
	Database string `json:"database"`
	ID       string `json:"id"`
}

func (s *bucketState) journalFile() string { return filepath.Join(s.dir, "uploaded") }

// begin reads what an earlier push of a database uploaded to a bucket and did not publish. "" forgets it.
func (s *bucketState) begin(database string, m *depot.Manifest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extents = map[pack.ID][]depot.Extent{}
	if s.dir == "" {
		return
	}
	if s.journal != nil {
		_ = s.journal.Close()
	}
	head := journalHead{database, m.ID}
	if f, err := os.Open(s.journalFile()); err == nil && database != "" {
		var old journalHead
		d := json.NewDecoder(f)
		for err = d.Decode(&old); err == nil && old == head; {
			var list []depot.Extent
			if err = d.Decode(&list); err == nil {
				s.note(slices.DeleteFunc(list, func(e depot.Extent) bool { return uint64(e.Segment.Generation) < m.Floor }))
			}
		}
		_ = f.Close()
	}
	s.journal = nil
	if len(s.extents) == 0 {
		if b, err := json.Marshal(head); err == nil {
			_ = os.WriteFile(s.journalFile(), append(b, '\n'), 0o666)
		}
	}
	s.journal, _ = os.OpenFile(s.journalFile(), os.O_APPEND|os.O_WRONLY, 0o666)
}

func (s *bucketState) note(list []depot.Extent) {
	for _, e := range list {
		s.extents[e.Pack] = append(s.extents[e.Pack], e)
	}
}

func (s *bucketState) stored(id pack.ID) []depot.Extent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.extents[id])
}

func (s *bucketState) uploaded(list []depot.Extent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(list)
	if b, err := json.Marshal(list); err == nil && s.journal != nil {
		_, _ = s.journal.Write(append(b, '\n'))
	}
}

// end forgets what was uploaded: it was published.
func (s *bucketState) end() {
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.extents)
	if s.dir != "" {
		_ = os.Remove(s.journalFile())
	}
}

// close ends the journal of a push, which stays for the next one.
func (s *bucketState) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal != nil {
		_ = s.journal.Close()
		s.journal = nil
	}
}

// ClonedFrom returns the URL of the bucket that the database in a directory was cloned from, "" if there is none.
func ClonedFrom(dir string) string {
	for _, s := range bucketStates(index.DefaultFS, dir) {
		if s.Cloned {
			return s.URL
		}
	}
	if at, err := readAwayPlace(index.DefaultFS, dir); err == nil && at != nil {
		return at.URL
	}
	return ""
}

// forgetCaches removes what is cached of all buckets, and what pulls that failed have fetched: it may have what was
// erased. A push that uses one fails. all says that no pull is using it.
func forgetCaches(fs index.FS, dir string) (all bool) {
	if fs != index.DefaultFS {
		return true
	}
	all = true
	ended, cancel := context.WithCancel(context.Background())
	cancel() // a lock that is held is not waited for
	list, _ := os.ReadDir(filepath.Join(dir, remotesDir))
	for _, e := range list {
		at := filepath.Join(dir, remotesDir, e.Name())
		all = errors.Join(os.RemoveAll(filepath.Join(at, "cache")), os.RemoveAll(filepath.Join(at, "outgoing"))) == nil && all
		incoming := filepath.Join(at, "incoming")
		if _, err := os.Lstat(incoming); err != nil {
			continue
		}
		lock, err := index.LockFileOf(ended, fs, incoming+".lock")
		if err != nil {
			all = false
			continue
		}
		all = errors.Join(os.RemoveAll(incoming), lock.Close()) == nil && all
	}
	return all
}

// bucketStates reads what is known of all buckets.
func bucketStates(fs index.FS, dir string) (states []*bucketState) {
	if fs != index.DefaultFS {
		return nil
	}
	list, _ := os.ReadDir(filepath.Join(dir, remotesDir))
	for _, e := range list {
		var s bucketState
		if b, err := os.ReadFile(filepath.Join(dir, remotesDir, e.Name(), "state")); err == nil && json.Unmarshal(b, &s) == nil {
			states = append(states, &s)
		}
	}
	return states
}

// bucketStore opens a store when the first request is sent.
type bucketStore struct {
	kv.Store // nil until it is open
	open     func(ctx context.Context) (kv.Store, error)
	opening  ctxlock.Lock
	url      string
	by       Asker // of requests without one, if not nil
}

var _ kv.Conditional = (*bucketStore)(nil)

func (s *bucketStore) store(ctx context.Context) (kv.Store, error) {
	if as := cmp.Or(askerOf(ctx), s.by); as != nil {
		return as.Bucket(s.url), nil
	}
	if err := s.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer s.opening.Unlock()
	if s.Store == nil {
		store, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		s.Store = store
	}
	return s.Store, nil
}

func (s *bucketStore) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	store, err := s.store(ctx)
	if err != nil {
		return nil, err
	}
	return store.Get(ctx, key, rng)
}

func (s *bucketStore) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	store, err := s.store(ctx)
	if err != nil {
		return kv.Tagged{}, err
	}
	c, ok := store.(kv.Conditional)
	if !ok {
		return kv.Tagged{}, errors.ErrUnsupported
	}
	return c.GetTagged(ctx, key, known, limit)
}

func (s *bucketStore) SetTagged(context.Context, string, []byte, kv.Tag) (kv.Tag, error) {
	return kv.NoValue, kv.ErrReadOnly
}
