package icechunk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
)

// repository is the state that all versions of one repository share. Safe for concurrent use.
type repository struct {
	files      kv.Reader
	info       *info // nil in version 1
	containers *containers

	snapshots *lru.Cache[objectID, *snapshot]
	manifests *lru.Cache[objectID, *manifest]
}

// Bounds of the kept contents of files, in bytes.
const (
	keepSnapshots = 32 << 20
	keepManifests = 96 << 20
)

// Keys of the repository's info and of references.
const (
	infoKey  = "repo"
	refsDir  = "refs/"
	refFile  = "/ref.json"
	refGone  = "/ref.json.deleted"
	mainRef  = refsDir + "branch.main" + refFile
	branchOf = "branch."
	tagOf    = "tag."

	defaultBranch = "main"
)

// info is the file that a repository of version 2 begins with.
type info struct {
	snapshots      []snapshotInfo // by id
	branches, tags []ref
	config         []byte // a flexbuffer, nil without one
}

// snapshotInfo is the information on a snapshot that is known without its file.
type snapshotInfo struct {
	formats.Version
	id     objectID
	parent int        // -1 without one
	pruned []objectID // logs of ancestors that are gone
}

type ref struct {
	name     string
	snapshot int
}

func newRepository(files kv.Reader) *repository {
	return &repository{
		files:     files,
		snapshots: lru.New[objectID](keepSnapshots, (*snapshot).size),
		manifests: lru.New[objectID](keepManifests, (*manifest).size),
	}
}

// openRepository reads the list of snapshots.
func openRepository(ctx context.Context, files kv.Reader) (*repository, error) {
	r := newRepository(files)
	spec, body, err := readFile(ctx, files, infoKey, kindRepo)
	switch {
	case err == nil:
		if r.info, err = parseInfo(spec, body); err != nil {
			return nil, fmt.Errorf("icechunk: %s: %w", infoKey, err)
		}
		config := r.info.config
		r.containers = &containers{read: func() (map[string]string, error) {
			if config == nil {
				return nil, nil
			}
			return parseFlexConfig(config)
		}}
	case errors.Is(err, kv.ErrNotFound):
		// It is read later, when ctx may have ended.
		r.containers = &containers{read: func() (map[string]string, error) { return containersOf1(context.WithoutCancel(ctx), files) }}
	default:
		return nil, err
	}
	return r, nil
}

// parseInfo reads the file of a repository of version 2.
func parseInfo(spec byte, body []byte) (*info, error) {
	f := &buffer{b: body}
	root := f.root()
	in := &info{config: root.bytes(9)}
	list := root.need(4, 4, "snapshots of the repository")
	if f.err != nil {
		return nil, f.err
	}
	in.snapshots = make([]snapshotInfo, 0, list.n)
	for i := range list.n {
		t := list.table(i)
		s := snapshotInfo{id: t.id12(0, "the id of a snapshot"), parent: int(int32(t.u32(1)))}
		s.ID, s.Time, s.Message = s.id.String(), micros(t.u64(2)), string(t.needBytes(3, "the message"))
		s.Author = parseMetadata(t.vector(4, 4), spec)[authorName]
		pruned := t.vector(5, len(objectID{}))
		for j := range pruned.n {
			s.pruned = append(s.pruned, objectID(pruned.bytes(j)))
		}
		if f.err == nil && s.parent >= list.n {
			f.fail("the parent of snapshot %s is not there", s.ID)
		}
		if f.err == nil && i > 0 && bytes.Compare(in.snapshots[i-1].id[:], s.id[:]) >= 0 {
			f.fail("snapshots are not in the order of their ids")
		}
		if f.err != nil {
			return nil, f.err
		}
		in.snapshots = append(in.snapshots, s)
	}
	for i := range in.snapshots {
		if s := &in.snapshots[i]; s.parent >= 0 {
			s.Parents = []string{in.snapshots[s.parent].ID}
		}
	}
	in.tags = parseRefs(root.need(1, 4, "tags of the repository"), list.n)
	in.branches = parseRefs(root.need(2, 4, "branches of the repository"), list.n)
	return in, f.err
}

func parseRefs(v vector, snapshots int) (out []ref) {
	for i := range v.n {
		t := v.table(i)
		r := ref{string(t.needBytes(0, "the name of a branch or tag")), int(t.u32(1))}
		if v.f.err == nil && (r.snapshot < 0 || r.snapshot >= snapshots) {
			v.f.fail("the snapshot of %q is not there", r.name)
		}
		if v.f.err != nil {
			return nil
		}
		out = append(out, r)
	}
	return out
}

// find returns the information on a snapshot, nil if it is not listed.
func (in *info) find(id objectID) *snapshotInfo {
	i, ok := slices.BinarySearchFunc(in.snapshots, id, func(s snapshotInfo, id objectID) int { return bytes.Compare(s.id[:], id[:]) })
	if !ok {
		return nil
	}
	return &in.snapshots[i]
}

// resolve finds the snapshot that a version means: branch.NAME, tag.NAME or an id. ""
// is the branch main.
func (r *repository) resolve(ctx context.Context, version string) (objectID, error) {
	if version == "" {
		version = branchOf + defaultBranch
	}
	id, ok := parseID(version)
	branch, isBranch := strings.CutPrefix(version, branchOf)
	tag, isTag := strings.CutPrefix(version, tagOf)
	switch {
	case isBranch && branch != "" || isTag && tag != "":
	case ok:
		return id, nil
	default:
		return id, fmt.Errorf("icechunk: %w: %q is neither branch.NAME, tag.NAME nor the 20 characters of a snapshot", formats.ErrNoVersion, version)
	}
	if r.info == nil {
		return r.readRef(ctx, version, isTag)
	}
	list, name := r.info.branches, branch
	if isTag {
		list, name = r.info.tags, tag
	}
	for _, ref := range list {
		if ref.name == name {
			return r.info.snapshots[ref.snapshot].id, nil
		}
	}
	return id, noRef(version)
}

func noRef(version string) error {
	kind, name, _ := strings.Cut(version, ".")
	return fmt.Errorf("icechunk: %w: %s %q", formats.ErrNoVersion, kind, name)
}

// maxRef is how long the file of a branch or tag may be.
const maxRef = 64 << 10

// readRef reads the file of a branch or tag of version 1. A tag that was deleted keeps
// its file, and gets another beside it.
func (r *repository) readRef(ctx context.Context, name string, tag bool) (id objectID, err error) {
	if strings.ContainsAny(name, "/\x00") {
		return id, noRef(name)
	}
	key := refsDir + name + refFile
	b, err := readBounded(ctx, r.files, key, maxRef)
	if errors.Is(err, kv.ErrNotFound) {
		return id, noRef(name)
	}
	if err != nil {
		return id, err
	}
	if tag {
		gone, err := kv.Exists(ctx, r.files, refsDir+name+refGone)
		if err != nil {
			return id, err
		}
		if gone {
			return id, fmt.Errorf("icechunk: %w: tag %q was deleted", formats.ErrNoVersion, strings.TrimPrefix(name, tagOf))
		}
	}
	if id, err = parseRef(b); err != nil {
		err = fmt.Errorf("icechunk: %s: %w", key, err)
	}
	return id, err
}

// parseRef reads {"snapshot": ID}.
func parseRef(b []byte) (objectID, error) {
	var doc struct {
		Snapshot string `json:"snapshot"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return objectID{}, formats.Invalid("%v", err)
	}
	id, ok := parseID(doc.Snapshot)
	if !ok {
		return id, formats.Invalid("%.100q is not an id of a snapshot", doc.Snapshot)
	}
	return id, nil
}

// names lists the branches and tags.
func (r *repository) names(ctx context.Context) (out []formats.Name, err error) {
	if r.info != nil {
		for _, b := range r.info.branches {
			out = append(out, formats.Name{Name: b.name, ID: r.info.snapshots[b.snapshot].ID})
		}
		for _, t := range r.info.tags {
			out = append(out, formats.Name{Tag: true, Name: t.name, ID: r.info.snapshots[t.snapshot].ID})
		}
	} else if out, err = r.listRefs(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b formats.Name) int {
		if a.Tag != b.Tag {
			if b.Tag {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

func (r *repository) listRefs(ctx context.Context) (out []formats.Name, err error) {
	list, ok := r.files.(kv.Lister)
	if !ok {
		return nil, fmt.Errorf("icechunk: branches and tags of version 1 cannot be listed here: %w", errors.ErrUnsupported)
	}
	for key, err := range list.List(ctx, kv.ListOptions{Prefix: refsDir}) {
		if err != nil {
			return nil, err
		}
		name, is := strings.CutSuffix(key[len(refsDir):], refFile)
		if !is || strings.Contains(name, "/") {
			continue
		}
		branch, isBranch := strings.CutPrefix(name, branchOf)
		tag, isTag := strings.CutPrefix(name, tagOf)
		if !isBranch && !isTag {
			continue
		}
		id, err := r.readRef(ctx, name, isTag)
		if errors.Is(err, formats.ErrNoVersion) {
			continue // a tag that was deleted
		}
		if err != nil {
			return nil, err
		}
		out = append(out, formats.Name{Tag: isTag, Name: branch, ID: id.String()})
		if isTag {
			out[len(out)-1].Name = tag
		}
	}
	return out, nil
}

// mostVersions is how many branches and tags an error lists.
const mostVersions = 8

// someVersions lists the first branches and tags as URLs spell versions, "" if they
// cannot be listed.
func (r *repository) someVersions(ctx context.Context) string {
	names, _ := r.names(ctx)
	var some []string
	for _, n := range names[:min(len(names), mostVersions)] {
		kind := branchOf
		if n.Tag {
			kind = tagOf
		}
		some = append(some, "@"+kind+url.PathEscape(n.Name))
	}
	if len(names) > mostVersions {
		some = append(some, "…")
	}
	return strings.Join(some, ", ")
}

// snapshot reads a snapshot. A missing one is formats.ErrNoVersion.
func (r *repository) snapshot(ctx context.Context, id objectID) (*snapshot, error) {
	return r.snapshots.Get(ctx, id, func() (*snapshot, error) {
		spec, body, err := readFile(ctx, r.files, snapshotKey(id), kindSnapshot)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, fmt.Errorf("icechunk: %w: snapshot %v", formats.ErrNoVersion, id)
		}
		if err != nil {
			return nil, err
		}
		s, err := parseSnapshot(spec, body, id)
		if err != nil {
			return nil, fmt.Errorf("icechunk: %s: %w", snapshotKey(id), err)
		}
		return s, nil
	})
}

// manifest reads a manifest. It must be there.
func (r *repository) manifest(ctx context.Context, id objectID) (*manifest, error) {
	return r.manifests.Get(ctx, id, func() (*manifest, error) {
		_, body, err := readFile(ctx, r.files, manifestKey(id), kindManifest)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, badManifest(id, formats.Invalid("it is missing"))
		}
		if err != nil {
			return nil, err
		}
		m, err := parseManifest(body, id)
		if err != nil {
			return nil, badManifest(id, err)
		}
		return m, nil
	})
}

// version describes a snapshot.
func (r *repository) version(ctx context.Context, id objectID) (formats.Version, error) {
	if r.info != nil {
		if s := r.info.find(id); s != nil {
			return s.Version, nil
		}
	}
	s, err := r.snapshot(ctx, id)
	if err != nil {
		return formats.Version{}, err
	}
	v := formats.Version{ID: id.String(), Time: s.time, Message: s.msg, Author: s.meta[authorName]}
	if s.parent != nil && *s.parent != id {
		v.Parents = []string{s.parent.String()}
	}
	return v, nil
}
