package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/txn"
)

// Properties of a commit that was imported with its history: the source without
// secrets, and the name of the version there.
const (
	propSource  = "source.url"
	propVersion = "source.version"
)

// HistoryOptions say how a history is imported. The zero value works.
type HistoryOptions struct {
	// Prefix begins the names that branches and tags get here.
	Prefix string
	// Author is recorded where the source names none.
	Author string
	// Link keeps the chunks where they are, as virtual values; see
	// [ImportOptions].Link.
	Link bool
	// Validate says of which files Link records the version.
	Validate Validate
	// Progress, if set, is called with how many versions are imported. Calls do not overlap.
	Progress func(Progress)
}

// HistoryResult counts the work of an import of a history.
type HistoryResult struct {
	// Versions were imported, Known were there already.
	Versions, Known int64
	// Branches and Tags are the names that they have here, sorted.
	Branches, Tags []string
	// Renamed are the names of branches and tags of the source, with the ID of their
	// newest version, that names here cannot be like, and what they are called here:
	// "_" stands for a character such as a space, and more of them follow where another
	// branch or tag has that name. A tag is never called like a branch, which would hide it.
	Renamed map[SourceName]string
	// Keys were set or deleted, Bytes copied.
	Keys, Bytes int64
	// NotGranted and Forbidden are as in [ImportResult].
	NotGranted error
	Forbidden  []string
}

// ImportHistory imports every version of a source in a format with versions
// ([formats.Versioned]), with its branches and tags: each as a commit on the one before
// it, with message, time and author. Of a version only the changes are read.
//
// Each commit is complete when it is seen, and a branch grows commit by commit. If the
// import ends early, the imported commits stay. Another import of the same source continues
// after these commits, also if the source has new versions since. A branch or tag of the same
// name that no import of the source made, or a branch with other commits, is txn.ErrRefExists,
// before anything is written.
func (db *DB) ImportHistory(ctx context.Context, src *Source, o HistoryOptions) (*HistoryResult, error) {
	set, prefix, versioned, err := src.versions(ctx)
	if err != nil {
		return nil, err
	}
	h := &historian{
		db: db, src: src, o: o, set: set, prefix: prefix, versions: versioned,
		source: src.name(), commits: map[string]txn.CommitID{}, known: map[string]formats.Version{},
	}
	if set.Rules().Base != virtual.Inside {
		h.source = redact.URL(set.Rules().Base) // however its URL is spelled
		if prefix != "" {
			h.source += "|" + prefix
		}
	}
	h.linker = newLinker(db, src, ImportOptions{Link: true, Validate: o.Validate}, set, prefix)
	err = h.run(ctx)
	if err == nil && o.Link {
		h.res.Forbidden, h.res.NotGranted = db.grantLinked(h.linker.grants(), h.linker.forbidden())
	}
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", src.name(), err)
	}
	return &h.res, nil
}

// versions finds the versions that the source names, and the prefix of the keys in them
// that are meant.
func (s *Source) versions(ctx context.Context) (*source.Set, string, formats.Versioned, error) {
	set, prefix, err := s.env.ReferenceSet(ctx, s.at)
	if err != nil && !errors.Is(err, source.ErrNoReferences) {
		return nil, "", nil, err
	}
	if err == nil {
		if versions := set.Versions(); versions != nil {
			return set, prefix, versions, nil
		}
	}
	var has []string
	for _, f := range source.Formats() {
		if f.Store {
			has = append(has, f.Scheme+":")
		}
	}
	return nil, "", nil, fmt.Errorf("import %s: %w: it has no history to import; what these adapters open has one: %s", s.name(), ErrFormat, strings.Join(has, ", "))
}

// HasHistory makes sure that [DB.ImportHistory] can import the source, without reading
// its versions. Else the error is ErrFormat.
func (s *Source) HasHistory(ctx context.Context) error {
	_, _, _, err := s.versions(ctx)
	return err
}

// historian is one import of a history under way.
type historian struct {
	db       *DB
	src      *Source
	o        HistoryOptions
	set      *source.Set
	prefix   string // of keys that are imported
	versions formats.Versioned
	source   string
	linker   *linker

	names   []formats.Name
	tagged  map[string]string          // versions of the tags among them, by name
	local   map[formats.Name]string    // their names in this database
	known   map[string]formats.Version // by ID
	first   txn.CommitID               // of the database
	commits map[string]txn.CommitID    // of versions that are here
	tags    map[string]txn.CommitID    // of the database, before the import
	total   int64
	res     HistoryResult
}

func (h *historian) run(ctx context.Context) error {
	var err error
	if h.names, err = h.versions.Names(ctx); err != nil {
		return err
	}
	if len(h.names) == 0 {
		h.names = []formats.Name{{Name: txn.MainBranch, ID: h.versions.Version().ID}}
	}
	// The branch main first, then branches, then tags.
	rank := func(n formats.Name) int {
		switch {
		case n.Tag:
			return 2
		case n.Name == txn.MainBranch:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(h.names, func(a, b formats.Name) int { return rank(a) - rank(b) })
	h.local, h.tagged = formats.NamesLike(h.names, h.o.Prefix, txn.ToRefName), map[string]string{}
	for _, n := range h.names {
		if n.Tag {
			h.tagged[n.Name] = n.ID
		}
		if name := h.local[n]; name != h.o.Prefix+n.Name {
			if h.res.Renamed == nil {
				h.res.Renamed = map[SourceName]string{}
			}
			h.res.Renamed[n] = name
		}
		if err := h.read(ctx, n); err != nil {
			return err
		}
	}
	if err := h.here(ctx); err != nil {
		return err
	}
	for _, n := range h.names {
		if err := h.check(ctx, n); err != nil {
			return err
		}
	}
	for id := range h.known {
		if _, ok := h.commits[id]; ok {
			h.res.Known++
		}
	}
	h.total = int64(len(h.known)) - h.res.Known
	for _, n := range h.names {
		if err := h.take(ctx, n); err != nil {
			return err
		}
	}
	slices.Sort(h.res.Branches)
	slices.Sort(h.res.Tags)
	return nil
}

// read finds the versions that a branch or tag has, down to one that is known.
func (h *historian) read(ctx context.Context, n formats.Name) error {
	if _, ok := h.known[n.ID]; ok {
		return nil
	}
	at, err := h.versions.At(ctx, n.ID)
	if err != nil {
		return err
	}
	for v, err := range at.History(ctx) {
		if err != nil {
			return err
		}
		if _, ok := h.known[v.ID]; ok {
			return nil
		}
		h.known[v.ID] = v
	}
	return nil
}

// parent is the version that one is imported on, "" for none.
func (h *historian) parent(id string) string {
	if p := h.known[id].Parents; len(p) > 0 {
		if _, ok := h.known[p[0]]; ok {
			return p[0]
		}
	}
	return ""
}

// here finds the first commit of the database, and the versions that an import brought
// over earlier.
func (h *historian) here(ctx context.Context) error {
	seen := map[txn.CommitID]bool{}
	branches, tags, err := h.db.Refs(ctx)
	if err != nil {
		return err
	}
	h.tags = map[string]txn.CommitID{}
	for _, t := range tags {
		h.tags[t.Name] = t.Commit
	}
	for _, ref := range append(branches, tags...) {
		for c, err := range h.db.store.Log(ctx, ref.Commit) {
			if err != nil {
				return err
			}
			if seen[c.ID] {
				break // Log goes from newer to older ones, so most that follow were seen
			}
			seen[c.ID] = true
			if len(c.Parents) == 0 {
				h.first = c.ID
			}
			if v, ok := h.known[c.Properties[propVersion]]; ok && c.Properties[propSource] == h.source && c.Message == messageOf(v) && c.Time.Equal(v.Time) {
				h.commits[v.ID] = c.ID
			}
		}
	}
	return nil
}

// messageOf is the message of the commit of a version: its name where the format has no
// messages.
func messageOf(v formats.Version) string { return cmp.Or(v.Message, v.ID) }

// check makes sure that a branch or tag can be made, or go on.
func (h *historian) check(ctx context.Context, n formats.Name) error {
	name, called := h.local[n], ""
	if n.Name != name {
		called = fmt.Sprintf(" (%q of the source)", n.Name)
	}
	if !n.Tag {
		if !h.grows(ctx, name, n) {
			return fmt.Errorf("branch %s%s: %w, and its newest commit is not a version of the source's: choose a prefix", name, called, txn.ErrRefExists)
		}
		if tag, has := h.tags[name]; has && !h.made(name, tag) {
			return fmt.Errorf("branch %s%s: %w: the branch would hide the tag of this name: choose a prefix", name, called, txn.ErrRefExists)
		}
		return nil
	}
	if _, err := h.db.Head(ctx, name); err == nil {
		return fmt.Errorf("tag %s%s: %w: the branch of this name would hide the tag: choose a prefix, or delete the branch", name, called, txn.ErrRefExists)
	}
	if tag, has := h.tags[name]; has && tag != h.commits[n.ID] {
		return fmt.Errorf("tag %s%s: %w with another version: choose a prefix", name, called, txn.ErrRefExists)
	}
	if branch := h.scratch(n); !h.grows(ctx, branch, n) {
		return fmt.Errorf("tag %s%s: %w: the import makes it with a branch %s, which has other commits: delete that branch", name, called, txn.ErrRefExists, branch)
	}
	return nil
}

// made reports whether a tag here is of the source, from an import that went before.
func (h *historian) made(name string, tag txn.CommitID) bool {
	of, has := strings.CutPrefix(name, h.o.Prefix)
	id, is := h.tagged[of]
	return has && is && h.commits[id] == tag
}

// grows reports whether a branch here can come to the version of n: it is not there, or
// it is at the first commit of the database or at a version before.
func (h *historian) grows(ctx context.Context, branch string, n formats.Name) bool {
	head, err := h.db.Head(ctx, branch)
	if err != nil || head == h.first {
		return true // an error comes again when the branch is made
	}
	for id := n.ID; id != ""; id = h.parent(id) {
		if h.commits[id] == head {
			return true
		}
	}
	return false
}

// scratch is the branch on which the versions of a tag grow that no branch has: the same
// for an import that goes on, and of no one else.
func (h *historian) scratch(tag formats.Name) string {
	sum := sha256.Sum256([]byte(h.source + "\x00" + tag.Name))
	return fmt.Sprintf("importing-%x", sum[:12])
}

// take imports the versions of a branch or tag that are not here, and makes it.
func (h *historian) take(ctx context.Context, n formats.Name) error {
	var missing []string // oldest last
	base := h.first
	for id := n.ID; id != ""; id = h.parent(id) {
		if c, ok := h.commits[id]; ok {
			base = c
			break
		}
		missing = append(missing, id)
	}
	slices.Reverse(missing)
	name, branch := h.local[n], h.local[n]
	if n.Tag {
		branch = h.scratch(n)
	}
	if !n.Tag || len(missing) > 0 {
		if err := h.branchAt(ctx, branch, base); err != nil {
			return err
		}
	}
	if err := h.chain(ctx, branch, missing); err != nil {
		return err
	}
	if !n.Tag {
		h.res.Branches = append(h.res.Branches, name)
		return nil
	}
	h.res.Tags = append(h.res.Tags, name)
	if _, has := h.tags[name]; !has {
		if err := h.db.store.CreateTag(ctx, name, h.commits[n.ID]); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return h.db.DeleteBranch(ctx, branch)
	}
	return nil
}

// branchAt makes a branch at a commit, or moves it there from one before.
func (h *historian) branchAt(ctx context.Context, branch string, at txn.CommitID) error {
	head, err := h.db.Head(ctx, branch)
	switch {
	case errors.Is(err, txn.ErrNoRef):
		return h.db.store.CreateBranch(ctx, branch, at)
	case err == nil && head != at:
		_, err = h.db.store.Reset(ctx, branch, at)
	}
	return err
}
