package icechunk

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/refs"
)

// Writer writes a new repository of version 1 of the specification, which programs of
// version 2 read as well. Ids are hashes of the names that callers give, so that equal
// input gives equal ids.
type Writer struct {
	dir   formats.Files
	repo  *repository
	infos map[objectID]manifestInfo
	// blocks says how the manifests of an array are cut, spelled how its chunks are
	// named in the changes.
	blocks  map[nodeID][]uint32
	spelled map[nodeID]chunkKeys
	places  prefixes

	mu     sync.Mutex
	chunks map[objectID]struct{} // that were written lately
}

// manifestInfo is a snapshot's record of a manifest, except its id.
type manifestInfo struct {
	size  uint64
	count uint32
}

var _ formats.Writer = (*Writer)(nil)

// Names of the metadata of snapshots that Commit writes.
const (
	commitName = "zarrdb.commit" // of the version where it comes from
	mergedName = "zarrdb.merged" // of the parents besides the first
)

// Create begins a repository in a directory.
func Create(ctx context.Context, dir formats.Files) (*Writer, error) {
	w := &Writer{
		dir: dir, repo: newRepository(dir), infos: map[objectID]manifestInfo{},
		blocks: map[nodeID][]uint32{}, spelled: map[nodeID]chunkKeys{}, chunks: map[objectID]struct{}{},
	}
	first := &written{id: initialID, Version: formats.Version{Message: "Repository initialized", Time: time.Unix(0, 0)}}
	return w, w.put(ctx, snapshotKey(initialID), first.file(nil))
}

// idOf hashes a kind and names to an id.
func idOf(kind string, names ...string) (id objectID) {
	h := sha256.New()
	for _, s := range append([]string{kind}, names...) {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	copy(id[:], h.Sum(nil))
	return id
}

func (w *Writer) put(ctx context.Context, key string, b []byte) error {
	if err := w.dir.Set(ctx, key, b); err != nil {
		return fmt.Errorf("icechunk: write %s: %w", key, err)
	}
	return nil
}

// inlineMost is how long a chunk may be that stands in a manifest.
const inlineMost = 512

// Put implements [formats.Writer]. Equal chunks are stored once.
func (w *Writer) Put(ctx context.Context, key string, b []byte) (refs.Reference, error) {
	if len(b) <= inlineMost || isDocument(key) {
		return refs.Reference{Data: append([]byte{}, b...)}, nil
	}
	id := idOf("chunk", string(b))
	key = "chunks/" + id.String()
	r := refs.Reference{URL: key, Length: int64(len(b))}
	w.mu.Lock()
	_, ok := w.chunks[id]
	if len(w.chunks) > 1<<20 {
		clear(w.chunks) // some are then written again
	}
	w.mu.Unlock()
	if ok {
		return r, nil
	}
	if err := w.put(ctx, key, b); err != nil {
		return r, err
	}
	w.mu.Lock()
	w.chunks[id] = struct{}{}
	w.mu.Unlock()
	return r, nil
}

// Commit implements [formats.Writer]: it writes a snapshot and returns its id. Changes
// are documents zarr.json with their bytes, and chunks; other keys, and documents of other
// formats than Zarr v3, are formats.ErrUnsupported. An empty version without parents is
// the snapshot that each repository begins with. Author and properties become metadata of
// the snapshot, v.ID "zarrdb.commit", and parents besides the first "zarrdb.merged",
// with commas between them.
//
// The changes of one snapshot are held in memory, and the manifests that they are in.
func (w *Writer) Commit(ctx context.Context, v formats.Version, changes iter.Seq2[formats.Change, error]) (string, error) {
	s, err := w.begin(ctx, v)
	if err == nil {
		err = s.take(changes)
	}
	if err == nil && len(v.Parents) == 0 && len(s.nodes) == 0 {
		return initialID.String(), nil
	}
	if err == nil {
		err = s.arrays(ctx)
	}
	if err == nil {
		err = w.put(ctx, logKey(s.id), s.log())
	}
	if err == nil {
		err = w.put(ctx, snapshotKey(s.id), s.file(w.infos))
	}
	if err != nil {
		return "", fmt.Errorf("icechunk: snapshot of %s: %w", v.ID, err)
	}
	return s.id.String(), nil
}

// Finish implements [formats.Writer]. It writes branches and tags, which make the directory a
// repository, and the virtual chunk containers that programs may be allowed to follow. There must
// be a branch main. In a name "_" stands for a slash, and for characters that object stores escape;
// more of them follow where two names would be the same.
func (w *Writer) Finish(ctx context.Context, names []formats.Name) error {
	if !slices.ContainsFunc(names, isMain) {
		return fmt.Errorf("icechunk: a repository needs a branch %s", defaultBranch)
	}
	if config := w.places.config(); config != nil {
		if err := w.put(ctx, configKey, config); err != nil {
			return err
		}
	}
	// The branch main comes last: it makes the repository.
	names = append(slices.DeleteFunc(slices.Clone(names), isMain), names[slices.IndexFunc(names, isMain)])
	written := writtenNames(names)
	for _, n := range names {
		key := refsDir + branchOf
		if n.Tag {
			key = refsDir + tagOf
		}
		key += written[n] + refFile
		if err := w.put(ctx, key, fmt.Appendf(nil, `{"snapshot":%q}`, n.ID)); err != nil {
			return err
		}
	}
	return nil
}

// writtenNames returns the names of branches and tags in a repository. A slash, and
// each character that the object stores of icechunk escape in a file of a directory but
// not in an object of a bucket, becomes "_".
func writtenNames(names []formats.Name) map[formats.Name]string {
	plain := func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune("/\\%{}[]^`\"<>~#|*?", r) {
			return '_'
		}
		return r
	}
	return formats.NamesLike(names, "", func(name string) string { return strings.Map(plain, name) })
}

func isMain(n formats.Name) bool { return !n.Tag && n.Name == defaultBranch }

// arrayDocument has the members that are read of the document of an array.
type arrayDocument struct {
	Format   int      `json:"zarr_format"`
	NodeType string   `json:"node_type"`
	Shape    []uint64 `json:"shape"`
	Grid     struct {
		Name          string `json:"name"`
		Configuration struct {
			ChunkShape []uint64 `json:"chunk_shape"`
		} `json:"configuration"`
	} `json:"chunk_grid"`
	Names []*string `json:"dimension_names"`
}

// counts is how many chunks there are along each dimension.
func (d *arrayDocument) counts() []uint32 {
	out := make([]uint32, len(d.Shape))
	for i, n := range d.Shape {
		out[i] = uint32((n + d.Grid.Configuration.ChunkShape[i] - 1) / d.Grid.Configuration.ChunkShape[i])
	}
	return out
}

// parseDocument reads a document that is written, and returns it as Icechunk can have
// it: with the chunk keys that it knows.
func parseDocument(key string, b []byte) (*arrayDocument, []byte, error) {
	d := &arrayDocument{}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, nil, formats.Unsupported("%s: %v", key, err)
	}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, nil, formats.Unsupported("%s: an array that Icechunk cannot have: %v", key, err)
	}
	switch {
	case d.Format != 3 || d.NodeType != "array" && d.NodeType != "group":
		return nil, nil, formats.Unsupported("%s: it is not a document of Zarr v3", key)
	case d.NodeType == "group":
		return d, b, nil
	case d.Grid.Name != "regular" || len(d.Grid.Configuration.ChunkShape) != len(d.Shape):
		return nil, nil, formats.Unsupported("%s: chunk grid %q", key, d.Grid.Name)
	case d.Names != nil && len(d.Names) != len(d.Shape):
		return nil, nil, formats.Unsupported("%s: %d dimension names", key, len(d.Names))
	}
	for i, n := range d.Grid.Configuration.ChunkShape {
		if n == 0 || d.Shape[i] > 0 && (d.Shape[i]-1)/n >= 1<<32-1 {
			return nil, nil, formats.Unsupported("%s: more chunks than Icechunk counts", key)
		}
	}
	if k := keysOf(b); k != (chunkKeys{separator: '/'}) {
		all["chunk_key_encoding"] = json.RawMessage(`{"name":"default","configuration":{"separator":"/"}}`)
		var err error
		if b, err = json.MarshalIndent(all, "", "  "); err != nil {
			return nil, nil, err
		}
	}
	return d, b, nil
}
