package ocdbt

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// WriterOptions say how a store is written. The zero value works.
type WriterOptions struct {
	// InlineBytes is the longest value that lies in a leaf: at most 1 MiB, default 100,
	// negative for none but empty ones.
	InlineBytes int
	// NodeBytes is about the largest size of a node, default 128 KiB. Each commit writes
	// the nodes again that have a changed key; each first read of a key reads as many
	// nodes as the tree is high.
	NodeBytes int
	// ArityLog2 is the binary logarithm of the arity of the version tree: 1 to 16,
	// default 4.
	ArityLog2 int
	// FileBytes is about the size of a data file, which is held in memory until it is
	// written; default 32 MiB.
	FileBytes int
}

func (o *WriterOptions) withDefaults() (WriterOptions, error) {
	var out WriterOptions
	if o != nil {
		out = *o
	}
	for _, d := range []struct {
		field *int
		to    int
	}{{&out.InlineBytes, 100}, {&out.NodeBytes, 128 << 10}, {&out.ArityLog2, 4}, {&out.FileBytes, 32 << 20}} {
		if *d.field == 0 {
			*d.field = d.to
		}
	}
	out.InlineBytes = max(0, out.InlineBytes)
	switch {
	case out.InlineBytes > maxInlineValue:
		return out, fmt.Errorf("ocdbt: InlineBytes is %d, more than %d", out.InlineBytes, maxInlineValue)
	case out.ArityLog2 < 1 || out.ArityLog2 > maxArityLog2:
		return out, fmt.Errorf("ocdbt: ArityLog2 is %d, not 1 to %d", out.ArityLog2, maxArityLog2)
	case out.NodeBytes < 0 || out.NodeBytes > mostNode/4:
		return out, fmt.Errorf("ocdbt: NodeBytes is %d, not 1 to %d", out.NodeBytes, mostNode/4)
	case out.FileBytes < 0:
		return out, fmt.Errorf("ocdbt: FileBytes is %d", out.FileBytes)
	}
	return out, nil
}

// Writer writes a new store, a generation at a time:
//
//	Put    ─▶ a value into the data file
//	Commit ─▶ keys into the tree: nodes with changes anew
//	…
//	Finish ─▶ version tree, manifest: only now there is a store
//
// After an error the store cannot be finished; the data files that were written stay.
type Writer struct {
	o     WriterOptions
	files formats.Files
	enc   *zstd.Encoder
	s     *store // reads what was written
	root  tree
	m     *manifest
	// levels are nodes of the version tree that are not full: levels[h] has the children
	// of the one of height h+1.
	levels [][]versionRef

	mu    sync.Mutex // of what follows, against other calls of Put
	path  string     // of the data file that is being filled, "" without one
	data  []byte
	count uint64 // of data files
	err   error
}

var _ formats.Writer = (*Writer)(nil)

// tree is a tree without its keys. Its root is missing if it is empty.
type tree struct {
	height uint8
	root   location
	stats  statistics
}

// NewWriter begins a store among some files, where there must be none. o may be nil.
func NewWriter(files formats.Files, o *WriterOptions) (*Writer, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Writer{o: opts, files: files, root: tree{root: missingRoot}}
	w.m = &manifest{config: config{maxInline: uint64(opts.InlineBytes), maxNode: uint64(opts.NodeBytes), arityLog2: uint8(opts.ArityLog2)}}
	_, _ = rand.Read(w.m.uuid[:]) // never an error
	if w.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)); err != nil {
		return nil, err
	}
	w.s = &store{files: written{w}, manifest: w.m, nodes: lru.New[place](cacheBytes, (*node).size)}
	return w, nil
}

// written reads data files, also the one that is being filled.
type written struct{ w *Writer }

func (r written) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if key == r.w.path {
		return kv.ReadValue(ctx, kv.Bytes(r.w.data), rng)
	}
	return r.w.files.Get(ctx, key, rng)
}

// dataDir begins the names of data files.
const dataDir = "d/"

// most is how many changes are held in memory before they go into the tree.
const most = 1 << 18

func (w *Writer) Put(ctx context.Context, key string, b []byte) (refs.Reference, error) {
	if len(b) <= w.o.InlineBytes {
		return refs.Reference{Data: append([]byte{}, b...)}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return refs.Reference{}, w.err
	}
	l, err := w.append(ctx, b)
	if w.err = err; err != nil {
		return refs.Reference{}, fmt.Errorf("ocdbt: key %s: %w", quote(key), err)
	}
	return refs.Reference{URL: l.file.path, Offset: int64(l.off), Length: int64(l.n)}, nil
}

// Commit implements [formats.Writer]: it makes the next generation and returns "v" and
// its number, from 1 on. The parent, if there is one, must be the generation before. Of
// several changes to one key the last counts. Times are nanoseconds from 1970 on and must
// increase: an earlier one becomes that of the generation before and a nanosecond.
// Messages, authors and properties are not kept.
//
// Memory is a data file, and about 100 bytes and the key for each change, of which
// more than 262,144 become several steps.
func (w *Writer) Commit(ctx context.Context, v formats.Version, changes iter.Seq2[formats.Change, error]) (id string, err error) {
	if w.err != nil {
		return "", w.err
	}
	defer func() { w.err = err }()
	switch last := w.last(); {
	case len(v.Parents) == 0:
		w.root = tree{root: missingRoot}
	case v.Parents[0] != last:
		return "", fmt.Errorf("ocdbt: %w: generation %q to go on from, the last one is %q", formats.ErrNoVersion, v.Parents[0], last)
	}
	var pending []entry
	for c, err := range changes {
		if err != nil {
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		e, err := w.entry(ctx, &c)
		if err != nil {
			return "", err
		}
		if pending = append(pending, e); len(pending) == most {
			if w.root, err = w.apply(ctx, w.root, pending); err != nil {
				return "", err
			}
			pending = pending[:0]
		}
	}
	if w.root, err = w.apply(ctx, w.root, pending); err != nil {
		return "", err
	}
	if err := w.add(ctx, v.Time); err != nil {
		return "", err
	}
	return w.last(), nil
}

// last is the ID of the last generation, "" before the first.
func (w *Writer) last() string {
	if n := len(w.m.versions); n > 0 {
		return fmt.Sprintf("v%d", w.m.versions[n-1].number)
	}
	return ""
}

// entry makes an entry of a change, and stores its value if Put did not.
func (w *Writer) entry(ctx context.Context, c *formats.Change) (e entry, err error) {
	e = entry{key: c.Key, deleted: c.Deleted}
	switch {
	case len(c.Key) > maxKey:
		return e, fmt.Errorf("ocdbt: key %s: %w: more than %d bytes", quote(c.Key), kv.ErrInvalidKey, maxKey)
	case c.Deleted:
		return e, nil
	case c.Inline() && len(c.Data) <= w.o.InlineBytes:
		e.data = append([]byte(nil), c.Data...)
		return e, nil
	case c.Inline():
		if c.Reference, err = w.Put(ctx, c.Key, c.Data); err != nil {
			return e, err
		}
	case c.Whole() || !strings.HasPrefix(c.URL, dataDir) || c.Offset < 0:
		return e, formats.Unsupported("ocdbt: key %s: a value that lies elsewhere", quote(c.Key))
	}
	e.long = true
	e.location = location{file: dataFile{path: c.URL}, off: uint64(c.Offset), n: uint64(c.Length)}
	return e, nil
}

// append appends bytes to the data file.
func (w *Writer) append(ctx context.Context, b []byte) (location, error) {
	if len(w.data) > 0 && len(w.data)+len(b) > w.o.FileBytes {
		if err := w.flush(ctx); err != nil {
			return location{}, err
		}
	}
	if w.path == "" {
		w.count++
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(w.m.uuid[:], w.count))
		w.path = dataDir + hex.EncodeToString(sum[:16])
	}
	l := location{file: dataFile{path: w.path}, off: uint64(len(w.data)), n: uint64(len(b))}
	w.data = append(w.data, b...)
	return l, nil
}

// flush writes the data file.
func (w *Writer) flush(ctx context.Context) error {
	if w.path == "" {
		return nil
	}
	err := w.files.Set(ctx, w.path, w.data)
	w.path, w.data = "", w.data[:0]
	return err
}

// add adds a generation for the tree as it is.
func (w *Writer) add(ctx context.Context, at time.Time) error {
	arity := 1 << w.o.ArityLog2
	g := generation{number: 1, height: w.root.height, root: w.root.root, stats: w.root.stats}
	if at.After(time.Unix(0, 0)) && at.Year() < 2262 {
		g.time = uint64(at.UnixNano())
	}
	if n := len(w.m.versions); n > 0 {
		last := &w.m.versions[n-1]
		g.number = last.number + 1
		g.time = max(g.time, last.time+1)
		if n == arity {
			if err := w.push(ctx, 0, &versionNode{versions: w.m.versions}); err != nil {
				return err
			}
			w.m.versions = nil
		}
	}
	w.m.versions = append(w.m.versions, g)
	return nil
}

// push writes a full node of the version tree, of height h, and makes it a child of the
// next level.
func (w *Writer) push(ctx context.Context, h int, v *versionNode) error {
	if h == len(w.levels) {
		w.levels = append(w.levels, nil)
	}
	if len(w.levels[h]) == 1<<w.o.ArityLog2 {
		if err := w.push(ctx, h+1, &versionNode{height: uint8(h + 1), nodes: w.levels[h]}); err != nil {
			return err
		}
		w.levels[h] = nil
	}
	ref, err := w.writeVersions(ctx, v)
	w.levels[h] = append(w.levels[h], ref)
	return err
}

func (w *Writer) writeVersions(ctx context.Context, v *versionNode) (ref versionRef, err error) {
	ref.height = v.height
	if v.height == 0 {
		ref.last, ref.time = v.versions[len(v.versions)-1].number, v.versions[0].time
		ref.count = uint64(len(v.versions))
	} else {
		ref.last, ref.time = v.nodes[len(v.nodes)-1].last, v.nodes[0].time
		for i := range v.nodes {
			ref.count += v.nodes[i].count
		}
	}
	ref.location, err = w.append(ctx, v.encode(w.m.arityLog2, w.enc))
	return ref, err
}

// Finish implements [formats.Writer]. It writes the version tree and the manifest, and
// ends the writer. A store without commits gets one empty generation. After an error it
// returns that error and writes no manifest.
func (w *Writer) Finish(ctx context.Context, _ []formats.Name) (err error) {
	if w.err != nil {
		return w.err
	}
	defer func() { w.err = errors.Join(err, kv.ErrClosed) }()
	if len(w.m.versions) == 0 {
		if err := w.add(ctx, time.Now()); err != nil {
			return err
		}
	}
	for h, nodes := range slices.Backward(w.levels) {
		ref, err := w.writeVersions(ctx, &versionNode{height: uint8(h + 1), nodes: nodes})
		if err != nil {
			return err
		}
		w.m.nodes = append(w.m.nodes, ref)
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	return w.files.Set(ctx, manifestName, w.m.encode(w.enc))
}

// sorted sorts changes and keeps the last of each key.
func sorted(changes []entry) []entry {
	slices.SortStableFunc(changes, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	out := changes[:0]
	for i := range changes {
		if n := len(out); n > 0 && out[n-1].key == changes[i].key {
			out[n-1] = changes[i]
		} else {
			out = append(out, changes[i])
		}
	}
	return out
}
