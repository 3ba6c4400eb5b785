package precomputed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/jpeg"
	"github.com/zarrdb/zarrdb/formats/png"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

const scheme = "neuroglancer-precomputed"

// Format returns the precomputed format for the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: scheme, Directory: true, Open: open, Detect: detect, Files: []string{infoFile},
		Gap: shardGap,
		Codecs: []codecs.Entry{
			{V3: []string{segmentationCodec}, Kind: codecs.ArrayToBytes, Parse: parseSegmentation},
			imageEntry("jpeg", jpeg.Format()),
			imageEntry("png", png.Format()),
			formats.RefusedCodec(scheme),
		},
		Plan: func(ctx context.Context, src kv.Reader, path string, o formats.WriteOptions) (formats.Plan, error) {
			return newPlan(ctx, src, path, o, shardBytes)
		},
	}
}

// shardGap is worth reading between two chunks of a shard. Along its Morton curve, a
// plane through 8×8×8 chunks is made of runs of four chunks that lie four apart, which is
// 1 MiB of chunks of 64×64×64 bytes.
const shardGap = 2 << 20

// detect reports whether a directory has the info of a volume. "@type" is optional
// there; the info of meshes or skeletons has no scales.
func detect(e formats.Evidence) bool {
	if e.File == nil {
		return false
	}
	head := string(e.File(infoFile))
	return strings.HasPrefix(strings.TrimLeft(head, " \t\r\n"), "{") &&
		(strings.Contains(head, `"`+volumeType+`"`) || strings.Contains(head, `"scales"`) && strings.Contains(head, `"data_type"`))
}

// set is a volume as a reference set: a tree whose array documents are made when they
// are asked for, because an unsharded scale is looked into for compressed files.
type set struct {
	*formats.Tree
	volume *volume
	files  kv.Reader
	list   kv.Lister // nil if files cannot be listed
	docs   map[string]*scale

	mu       sync.Mutex
	suffixes map[*scale]string // of its files, where that is known
}

var _ refs.Set = (*set)(nil)

// open reads info.
func open(ctx context.Context, base formats.Base, _ formats.Options) (refs.Set, error) {
	text, err := base.Files.Get(ctx, infoFile, kv.AtMost(maxInfo))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: there is no file %s", formats.ErrFormat, infoFile)
	}
	if err != nil {
		return nil, err
	}
	v, err := parseInfo(text)
	if err != nil {
		return nil, err
	}
	s := &set{Tree: formats.NewTree(), volume: v, files: base.Files, docs: map[string]*scale{}, suffixes: map[*scale]string{}}
	s.list, _ = base.Files.(kv.Lister)
	cache := newIndexes()
	for _, sc := range v.Scales {
		prefix := ""
		if sc.name != "" {
			prefix = sc.name + "/"
		}
		s.docs[prefix+document] = sc
		s.Put(prefix+document, nil)
		a := formats.Array{Prefix: prefix + "c/", Separator: '/', Counts: sc.counts[:]}
		if sc.refused != nil {
			a.Prefix = prefix // as the document of a formats.Refusal says
		}
		switch {
		case sc.lost:
			a.Counts = []int64{0}
			a.Chunk = func(context.Context, []int64) (refs.Reference, error) { return refs.Reference{}, kv.ErrNotFound }
		case sc.Sharding != nil:
			sh := &shards{sharding: *sc.Sharding, files: base.Files, dir: sc.dir(), counts: sc.counts, cache: cache}
			a.Chunk = func(ctx context.Context, coords []int64) (refs.Reference, error) {
				file, off, n, err := sh.find(ctx, [3]int64(coords))
				return refs.Reference{URL: file, Offset: off, Length: n}, err
			}
			if s.list != nil {
				a.Coords = func(ctx context.Context) iter.Seq2[[]int64, error] { return s.shardCoords(ctx, sh) }
			}
		default:
			a.Chunk = func(ctx context.Context, coords []int64) (refs.Reference, error) {
				return s.chunkFile(ctx, sc, coords)
			}
			a.Coords = func(ctx context.Context) iter.Seq2[[]int64, error] { return s.fileCoords(ctx, sc) }
		}
		s.Add(a)
	}
	if len(v.Scales) > 1 {
		s.Put(document, v.group())
	}
	return s, nil
}

// dir is the directory of a scale.
func (s *scale) dir() string {
	if s.Key == "." {
		return ""
	}
	return s.Key + "/"
}

// Lookup implements [refs.Set]. The only scale of a volume is found under its key, too.
func (s *set) Lookup(ctx context.Context, key string) (refs.Reference, error) {
	if only := s.volume.Scales[0]; only.name == "" {
		if rest, ok := strings.CutPrefix(key, only.dir()); ok && (rest == document || strings.HasPrefix(rest, "c/")) {
			key = rest
		}
	}
	if sc := s.docs[key]; sc != nil {
		suffix, err := s.suffix(ctx, sc)
		if err != nil {
			return refs.Reference{}, err
		}
		return refs.Reference{Data: s.volume.array(sc, suffix)}, nil
	}
	return s.Tree.Lookup(ctx, key)
}

func (s *set) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for e, err := range s.Tree.Entries(ctx) {
			if err == nil && s.docs[e.Key] != nil {
				e.Reference, err = s.Lookup(ctx, e.Key)
			}
			e.Optional = false // it was listed
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// suffix returns the suffix of the files of an unsharded scale: the suffix of the first
// file, if it stands for a compression. It is "" on servers without listings: they send
// compressed files decompressed.
func (s *set) suffix(ctx context.Context, sc *scale) (string, error) {
	if sc.Sharding != nil || s.list == nil || sc.lost {
		return "", nil
	}
	s.mu.Lock()
	suffix, known := s.suffixes[sc]
	s.mu.Unlock()
	if known {
		return suffix, nil
	}
	for key, err := range s.list.List(ctx, kv.ListOptions{Prefix: sc.dir()}) {
		if errors.Is(err, errors.ErrUnsupported) {
			break
		}
		if err != nil {
			return "", err
		}
		if suffix = path.Ext(key); !isSuffix(suffix) {
			suffix = ""
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suffixes[sc] = suffix
	return suffix, nil
}

func isSuffix(s string) bool {
	_, ok := suffixes[s]
	return ok
}

// fileName is the name of the file of a chunk in the directory of its scale.
func (s *scale) fileName(coords []int64) string {
	b := make([]byte, 0, 64)
	for d := range 3 {
		from := coords[d] * s.chunk[d]
		to := min(from+s.chunk[d], int64(s.Size[d]))
		if d > 0 {
			b = append(b, '_')
		}
		b = strconv.AppendInt(b, int64(s.Offset[d])+from, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, int64(s.Offset[d])+to, 10)
	}
	return string(b)
}

func (s *set) chunkFile(ctx context.Context, sc *scale, coords []int64) (refs.Reference, error) {
	suffix, err := s.suffix(ctx, sc)
	if err != nil {
		return refs.Reference{}, err
	}
	return refs.Reference{URL: sc.dir() + sc.fileName(coords) + suffix, Length: refs.WholeFile, Optional: true}, nil
}

// fileCoords yields the chunks that have a file, or asks for each where nothing is
// listed.
func (s *set) fileCoords(ctx context.Context, sc *scale) iter.Seq2[[]int64, error] {
	if s.list == nil {
		return s.askedCoords(ctx, sc)
	}
	return func(yield func([]int64, error) bool) {
		suffix, err := s.suffix(ctx, sc)
		if err != nil {
			yield(nil, err)
			return
		}
		for key, err := range s.list.List(ctx, kv.ListOptions{Prefix: sc.dir()}) {
			if err != nil {
				yield(nil, err)
				return
			}
			name, ok := strings.CutSuffix(key[len(sc.dir()):], suffix)
			if !ok {
				continue
			}
			coords, ok := sc.parseFileName(name)
			if ok && !yield(coords, nil) {
				return
			}
		}
	}
}

// parseFileName is the reverse of fileName; ok is false for another name.
func (s *scale) parseFileName(name string) (coords []int64, ok bool) {
	coords = make([]int64, 4)
	rest := name
	for d := range 3 {
		part, tail, _ := strings.Cut(rest, "_")
		rest = tail
		if part == "" {
			return nil, false
		}
		end := 1 + strings.IndexByte(part[1:], '-') // behind a sign
		if end < 1 {
			return nil, false
		}
		from, err := strconv.ParseInt(part[:end], 10, 64)
		if err != nil {
			return nil, false
		}
		coords[d] = (from - int64(s.Offset[d])) / s.chunk[d]
		if coords[d] < 0 || coords[d] >= s.counts[d] {
			return nil, false
		}
	}
	return coords, s.fileName(coords) == name
}

// maxAsked bounds the chunks of a scale that are asked for one by one.
const maxAsked = 1 << 20

func (s *set) askedCoords(ctx context.Context, sc *scale) iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		total := (&shards{counts: sc.counts}).chunks()
		if total > maxAsked {
			yield(nil, fmt.Errorf("precomputed: %s: %d chunks are too many to ask for each, and the server is not listed: %w", sc.Key, total, errors.ErrUnsupported))
			return
		}
		for i := range total {
			coords := []int64{i / (sc.counts[1] * sc.counts[2]), i / sc.counts[2] % sc.counts[1], i % sc.counts[2], 0}
			found, err := kv.Exists(ctx, s.files, sc.dir()+sc.fileName(coords))
			if (found || err != nil) && (!yield(coords, err) || err != nil) {
				return
			}
		}
	}
}

// shardCoords yields the chunks of all shards that there are.
func (s *set) shardCoords(ctx context.Context, sh *shards) iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		for key, err := range s.list.List(ctx, kv.ListOptions{Prefix: sh.dir}) {
			if err != nil {
				yield(nil, err)
				return
			}
			n, err := strconv.ParseUint(strings.TrimSuffix(key[len(sh.dir):], ".shard"), 16, 64)
			if err != nil || sh.dir+sh.file(n) != key {
				continue
			}
			for cell, err := range sh.cells(ctx, key) {
				if !yield(append(cell[:], 0), err) || err != nil {
					return
				}
			}
		}
	}
}
