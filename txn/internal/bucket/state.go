package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// RemotesDir has a directory for each bucket that a database has been pushed to, or pulled from:
//
//	state       what is known of the bucket; no credentials
//	cache/      indexes of bundles, and which payloads of away/ were verified
//	uploaded    what a push has uploaded, until it is published
//	incoming/   what a pull has fetched, until it is in the database; incoming.lock is locked meanwhile
//	outgoing/   what a push of a lazy clone has fetched, until it is pushed
//
// All of it may be removed: then it is found out anew.
const RemotesDir = "remotes"

// State is what a database remembers of a bucket. Errors of its files are ignored: they cost requests.
type State struct {
	Content

	dir      string // "" without files
	Incoming string

	mu      sync.Mutex
	journal *os.File
	extents map[pack.ID][]depot.Extent
}

// Content is the content of the file.
type Content struct {
	URL    string       `json:"url"`
	Cloned bool         `json:"cloned,omitempty"` // the database came from there
	Probed bool         `json:"probed,omitempty"` // the store keeps its promises
	Known  *depot.State `json:"known,omitempty"`
	// Refs are the branches and tags of the bucket as of the last transfer.
	Refs map[string]depot.ID `json:"refs,omitempty"`
	// Mirrored names the manifest whose refs a clone that is a cache has.
	Mirrored string `json:"mirrored,omitempty"`
}

// Dir is where the state of a bucket is.
func Dir(fs index.FS, dir, name string) string {
	sum := digest.Of([]byte(name))
	return fs.PathJoin(dir, RemotesDir, sum.String()[:16])
}

// Load reads the state of a bucket. dir is the directory of the database, or "" before there is one. With dry the state writes no files.
func Load(fs index.FS, dir, name string, dry bool) (*State, error) {
	s := &State{Content: Content{URL: name}}
	if dir == "" {
		return s, nil
	}
	s.Incoming = fs.PathJoin(Dir(fs, dir, name), "incoming")
	if fs != index.DefaultFS {
		return s, nil
	}
	s.dir = Dir(fs, dir, name)
	if !dry {
		_ = os.MkdirAll(s.dir, 0o777)
	}
	if b, err := os.ReadFile(filepath.Join(s.dir, "state")); err == nil {
		if json.Unmarshal(b, &s.Content) != nil || s.URL != name {
			s.Content = Content{URL: name}
		}
	}
	if dry {
		s.dir = ""
	}
	return s, nil
}

// Reread is what the file has now, which another process may have written.
func (s *State) Reread() (now Content) {
	if b, err := os.ReadFile(filepath.Join(s.dir, "state")); s.dir == "" || err != nil || json.Unmarshal(b, &now) != nil {
		return Content{}
	}
	return now
}

// MovedTo makes the state that of a new database, which was cloned.
func (s *State) MovedTo(fs index.FS, dir string) {
	if fs == index.DefaultFS {
		s.dir, s.Cloned = Dir(fs, dir, s.URL), true
		_ = os.MkdirAll(s.dir, 0o777)
	}
}

// Save writes the file.
func (s *State) Save() {
	if s.dir == "" {
		return
	}
	now := s.Reread() // another process may write it at the same time
	s.Cloned, s.Probed = s.Cloned || now.Cloned, s.Probed || now.Probed
	if b, err := json.Marshal(s.Content); err == nil {
		_ = index.ReplaceSmall(index.DefaultFS, s.dir, "state", append(b, '\n'))
	}
}

// Cache is where indexes are kept, nil for memory alone.
func (s *State) Cache() kv.Store {
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

// SavedCache is the cache of a bucket that nothing is put into.
func SavedCache(dir, url string) kv.Store {
	return savedCache{fileCache{dir: filepath.Join(Dir(index.DefaultFS, dir, url), "cache")}}
}

type savedCache struct{ fileCache }

func (savedCache) Set(context.Context, string, []byte) error { return kv.ErrReadOnly }

// Tidy removes cached indexes that the manifest does not list.
func (s *State) Tidy(m *depot.Manifest) {
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

func (s *State) journalFile() string { return filepath.Join(s.dir, "uploaded") }

// Begin reads what an earlier push of a database uploaded to a bucket and did not publish. "" forgets it.
func (s *State) Begin(database string, m *depot.Manifest) {
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

func (s *State) note(list []depot.Extent) {
	for _, e := range list {
		s.extents[e.Pack] = append(s.extents[e.Pack], e)
	}
}

// Stored returns what of a pack was uploaded and not published.
func (s *State) Stored(id pack.ID) []depot.Extent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.extents[id])
}

// Uploaded notes what a push has uploaded.
func (s *State) Uploaded(list []depot.Extent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(list)
	if b, err := json.Marshal(list); err == nil && s.journal != nil {
		_, _ = s.journal.Write(append(b, '\n'))
	}
}

// End forgets what was uploaded: it was published.
func (s *State) End() {
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.extents)
	if s.dir != "" {
		_ = os.Remove(s.journalFile())
	}
}

// Close ends the journal of a push, which stays for the next one.
func (s *State) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal != nil {
		_ = s.journal.Close()
		s.journal = nil
	}
}

// ForgetCaches removes what is cached of all buckets, and what pulls that failed have fetched: it may have what was
// erased. A push that uses one fails. all says that no pull is using it.
func ForgetCaches(fs index.FS, dir string) (all bool) {
	if fs != index.DefaultFS {
		return true
	}
	all = true
	ended, cancel := context.WithCancel(context.Background())
	cancel() // a lock that is held is not waited for
	list, _ := os.ReadDir(filepath.Join(dir, RemotesDir))
	for _, e := range list {
		at := filepath.Join(dir, RemotesDir, e.Name())
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

// States reads what is known of all buckets.
func States(fs index.FS, dir string) (states []*State) {
	if fs != index.DefaultFS {
		return nil
	}
	list, _ := os.ReadDir(filepath.Join(dir, RemotesDir))
	for _, e := range list {
		var s State
		if b, err := os.ReadFile(filepath.Join(dir, RemotesDir, e.Name(), "state")); err == nil && json.Unmarshal(b, &s) == nil {
			states = append(states, &s)
		}
	}
	return states
}
