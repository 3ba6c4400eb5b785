package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// ErrResumable marks the error of a stopped import or export that Resume can
// continue: the copied part is in a session, or at the destination.
var ErrResumable = errors.New("engine: it can be resumed")

// Progress is the progress of long work.
type Progress = transfer.Progress

// ImportOptions say where an import goes. The zero value imports to the root of
// the branch main.
type ImportOptions struct {
	// To is the path that the source's node gets. Groups above it are made
	// where they are missing.
	To string
	// Branch is the branch to import onto; default main.
	Branch string
	// Message and Author are recorded in the commit.
	Message, Author string
	// Overwrite replaces the contents of To; otherwise To must be empty.
	// Existing equal values are not stored again.
	Overwrite bool
	// Resume continues a stopped import of the same source to the same place.
	// If no import was stopped, a new one begins. Imported values are read again and compared, but
	// not stored again: a changed source is imported in its current state.
	// [DB.Append] does not read complete pieces again.
	Resume bool
	// Link keeps the values of a reference set where they are, as virtual
	// values. Resume of one set then starts over. The contents of To stay until
	// the import is complete, so that overwriting with a similar set changes
	// little. The database may then follow the same references as the source, on
	// this machine; see [DB.Grant].
	Link bool
	// Validate selects the files whose version Link records.
	Validate Validate
	// AnyOrder lets [DB.Append] join coordinates that repeat or go back.
	AnyOrder bool
	// Session imports into a stored session, which is saved and not committed.
	// If the import fails, the session is as it was last saved.
	Session *txn.SessionID
	// Progress, if set, is called from time to time with the progress. Calls do
	// not overlap.
	Progress func(Progress)
}

// ImportResult is the result of an import.
type ImportResult struct {
	// Commit is the new version, the last one if nothing changed, nil if the import
	// went into a session.
	Commit *txn.Commit
	// Nodes, Keys and Bytes were copied.
	Nodes, Keys, Bytes int64
	// Encoded is the bytes of elements that an append converted, or cut into other chunks.
	Encoded int64
	// Healed is how many damaged payloads of the destination were stored again, because
	// the source had their bytes.
	Healed int64
	// Unreadable has the errors of the first few of the arrays that cannot be opened,
	// see [zarr.Unreadable]; AllUnreadable counts all. They were imported too.
	Unreadable    []error
	AllUnreadable int64
	// Strange is an error if the group above has another format and does not
	// show the imported node; else nil.
	Strange *OtherFormatError
	// NotGranted is the error of storing which references of a linked set may be
	// followed: reading them then needs [Options].Follow. Else nil.
	NotGranted error
	// Forbidden are prefixes of URLs, at most [MaxForbidden]: reading does not follow the
	// references below them that this import linked; see [DB.Grant]. References that were linked before a
	// stopped import was resumed are not counted.
	Forbidden []string
	// LeftOut are the paths of databases in the source, which are not copied.
	LeftOut []string
}

// Import copies the Zarr hierarchy that src names into the database, keys and
// bytes unchanged, as one commit. All metadata is parsed before values are
// copied, so a hierarchy with groups that cannot be opened is not imported.
// Arrays that cannot be opened, see [zarr.Unreadable], are imported with the hierarchy
// above them; a source that is such an array itself, only if a codec is unknown.
// If ctx ends, the branch is unchanged, and the error is ErrResumable. Databases
// below the source, such as db itself, are left out.
func (db *DB) Import(ctx context.Context, src *Source, o ImportOptions) (*ImportResult, error) {
	o.To = names.Clean(o.To)
	if o.Link {
		return db.link(ctx, src, o)
	}
	sv, err := src.Survey(ctx)
	if err != nil {
		return nil, err
	}
	im := &importer{db: db, o: o, Survey: sv, to: names.Dir(o.To)}
	if err := im.check(); err != nil {
		return nil, fmt.Errorf("import to /%s: %w", o.To, err)
	}
	label := importLabel(src, o.To)
	if o.Progress != nil {
		if im.meter.Total, err = transfer.Count(im.keys(ctx)); err != nil {
			return nil, err
		}
	}
	s, err := db.beginImport(ctx, label, o, func(l string) bool { return l == label }, im.prepare)
	if err != nil {
		return nil, err
	}
	return im.run(ctx, s)
}

// Survey is the contents of a source before it is copied: every node, opened.
type Survey struct {
	// Nodes is the number of nodes.
	Nodes int64
	// Unreadable has the errors of the first few arrays that cannot be opened, see
	// [zarr.Unreadable]; AllUnreadable counts all.
	Unreadable    []error
	AllUnreadable int64

	selection
	version   zarr.Version // of the topmost node, 0 if that has no metadata
	documents []string
}

// Survey opens every node of the hierarchy that the source names, which proves
// that its metadata is sound. It is done once.
func (s *Source) Survey(ctx context.Context) (*Survey, error) {
	if err := s.surveying.Lock(ctx); err != nil {
		return nil, err
	}
	defer s.surveying.Unlock()
	if s.survey != nil {
		return s.survey, nil
	}
	at, err := s.dataset(ctx)
	if err != nil {
		return nil, err
	}
	view, ok := at.View.(kv.ReadLister)
	told := !ok
	sv := &Survey{}
	if sv.selection, err = s.selectionIn(ctx, at, view); err != nil {
		return nil, err
	}
	sv.open.Consolidated = told
	var nodes []listing.Node
	for n, err := range sv.nodes(ctx) {
		if told && errors.Is(err, errors.ErrUnsupported) {
			err = listing.ErrNone
		}
		unread := err
		path, m, err := sv.opened(n, err)
		if err == nil {
			err = wholeDraft(m, at)
		}
		if err == nil && path == at.Path && !errors.Is(unread, codecs.ErrUnknown) {
			err = unread // no readable node would be imported
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		if told {
			nodes = append(nodes, listing.Node{Dir: names.Dir(path), Meta: m})
		}
		if path == at.Path {
			sv.version = m.Version
		}
		sv.documents = append(sv.documents, documentsOf(path, m.Version)...)
	}
	if told {
		if sv.view, err = listing.New(at.View, nodes); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	s.survey = sv
	return sv, nil
}

// maxUnreadable bounds the reported arrays that cannot be opened.
const maxUnreadable = 8

// opened counts the nodes of a walk and returns their paths and metadata.
func (sv *Survey) opened(n *zarr.Node, err error) (path string, m *zarr.Meta, failed error) {
	path, m, failed = opened(n, err)
	if failed == nil {
		sv.Nodes++
		if err != nil {
			if sv.AllUnreadable++; len(sv.Unreadable) < maxUnreadable {
				sv.Unreadable = append(sv.Unreadable, err)
			}
		}
	}
	return path, m, failed
}

// opened returns path and metadata of a node that was opened, or of an array that
// cannot be.
func opened(n *zarr.Node, err error) (path string, m *zarr.Meta, failed error) {
	if err == nil {
		return n.Path(), n.Meta(), nil
	}
	path, m, ok := zarr.Unreadable(err)
	if !ok {
		return "", nil, err
	}
	return path, m, nil
}

// documentsOf lists the possible metadata keys of a node, if they determine
// which other keys are chunks.
func documentsOf(path string, version zarr.Version) (keys []string) {
	for _, name := range names.Documents(version) {
		keys = append(keys, names.Dir(path)+name)
	}
	return keys
}

// wanted reports whether a key is to be copied. If the URL names one of two
// formats that a directory is in, the documents of the other stay behind.
func wanted(only zarr.Version, key string) bool {
	name := path.Base(key)
	switch only {
	case zarr.V2:
		return name != names.V3
	case zarr.V3:
		return name != names.V2Array && name != names.V2Group && name != names.V2Attrs && name != names.V2Metadata
	}
	return true
}

// importer is one import under way.
type importer struct {
	*Survey
	db    *DB
	o     ImportOptions
	to    string // prefix of the destination's keys
	saved time.Time
	meter transfer.Meter
}

// check refuses destinations that no session can help.
func (im *importer) check() error {
	if im.o.To == "" {
		return nil
	}
	if im.version == zarr.Draft3 {
		return fmt.Errorf("%w: keys of the early v3 draft begin at the root", zarr.ErrNoForm)
	}
	return checkNewPath(im.version, im.o.To)
}

// importLabel is the label of the session of an import.
func importLabel(src *Source, to string) string {
	return fmt.Sprintf("import %s to /%s", src.name(), to)
}

// beginImport begins the session of an import and calls prepare. If o.Resume is set and an
// import left a session whose label is one of ours, beginImport takes up that session, and
// prepare gets its label.
func (db *DB) beginImport(ctx context.Context, label string, o ImportOptions, ours func(label string) bool, prepare func(ctx context.Context, s *Session, left string) error) (*Session, error) {
	branch, stored, left := cmp.Or(o.Branch, txn.MainBranch), o.Session, ""
	if o.Resume && stored == nil {
		switch info, err := db.left(ctx, branch, ours); {
		case err != nil:
			return nil, err
		case info != nil:
			stored, left = &info.ID, info.Label
		}
	}
	var s *Session
	var err error
	end := (*Session).Close // a stored session stays as it was last saved
	if stored != nil {
		s, err = db.resumeAlone(ctx, *stored)
	} else if s, err = db.Begin(ctx, branch); err == nil {
		s.SetLabel(label)
		end = (*Session).Abort
	}
	if err != nil {
		return nil, err
	}
	if o.Branch != "" && o.Branch != s.Branch() {
		err = fmt.Errorf("import: session %v is on branch %s, not %s", s.ID(), s.Branch(), o.Branch)
	} else {
		err = prepare(ctx, s, left)
	}
	if err != nil {
		return nil, errors.Join(err, end(s))
	}
	return s, nil
}

// left returns the stored session that an earlier run left on a branch, by its label; nil
// without one.
func (db *DB) left(ctx context.Context, branch string, ours func(label string) bool) (*SessionInfo, error) {
	list, err := db.Sessions(ctx)
	for i := range list {
		if s := &list[i]; ours(s.Label) && !s.Open && s.Branch == branch {
			return s, err
		}
	}
	return nil, err
}

// finish commits a session, or saves the session of the caller.
func (o *ImportOptions) finish(ctx context.Context, s *Session) (*txn.Commit, error) {
	if o.Session != nil {
		return nil, s.Detach(ctx)
	}
	return s.Commit(ctx, txn.CommitOptions{Message: o.Message, Author: o.Author})
}

// abandon ends a session after an error, which it returns; the session of the caller
// stays as it was last saved.
func (o *ImportOptions) abandon(s *Session, err error) error {
	if o.Session != nil {
		return errors.Join(err, s.Close())
	}
	return errors.Join(err, s.Abort())
}

// prepare makes sure that nothing is at the destination, and groups are above. It is done
// already in a session that was left.
func (im *importer) prepare(ctx context.Context, s *Session, left string) error {
	if left != "" {
		return nil
	}
	err := vacant(ctx, s, im.o.To)
	if errors.Is(err, zarr.ErrExists) && im.o.Overwrite {
		err = nil // copy compares
		if im.told() {
			err = s.Remove(ctx, im.o.To)
		}
	}
	if err != nil {
		return err
	}
	if im.o.To == "" {
		return nil
	}
	if err := s.groupsAbove(ctx, im.o.To, im.version, false); err != nil {
		return fmt.Errorf("import to /%s: %w", im.o.To, err)
	}
	return s.copies.Above(ctx, im.o.To)
}

// vacant is zarr.ErrExists if there is something at the destination.
func vacant(ctx context.Context, s *Session, to string) error {
	for key, err := range s.List(ctx, kv.ListOptions{Prefix: names.Dir(to)}) {
		if err != nil {
			return err
		}
		return fmt.Errorf("import to /%s: %w: there is %s; choose another path or overwrite it", to, zarr.ErrExists, key)
	}
	return nil
}

// run copies and commits.
func (im *importer) run(ctx context.Context, s *Session) (*ImportResult, error) {
	err := im.copy(ctx, s)
	var c *txn.Commit
	var strange *OtherFormatError
	if err == nil && im.version != 0 {
		strange, err = s.nodes.strangeAt(ctx, im.o.To, im.version)
	}
	if err == nil {
		c, err = im.o.finish(ctx, s)
	}
	if err != nil {
		return nil, im.stop(ctx, s, err)
	}
	return &ImportResult{Commit: c, Nodes: im.Nodes, Keys: im.meter.Keys.Load(), Bytes: im.meter.Bytes.Load(), Healed: s.tx.Healed(),
		Unreadable: im.Unreadable, AllUnreadable: im.AllUnreadable, Strange: strange, LeftOut: im.src.leftOut()}, nil
}

// stop ends a failed import. One that was interrupted is kept for Resume; a
// session of the caller's stays as it was last saved.
func (im *importer) stop(ctx context.Context, s *Session, err error) error {
	if im.o.Session == nil && ctx.Err() != nil {
		if derr := s.Detach(context.WithoutCancel(ctx)); derr == nil {
			return fmt.Errorf("%w: %w", err, ErrResumable)
		}
	}
	return im.o.abandon(s, err)
}

// copy writes documents first, because they tell which keys are chunks: then chunks go straight
// into the chunk map of their array.
func (im *importer) copy(ctx context.Context, s *Session) error {
	im.saved = time.Now()
	if (im.o.Overwrite || im.o.Resume) && !im.told() {
		if err := im.dropStale(ctx, s); err != nil {
			return err
		}
	}
	copyAll := func(keys []string) error {
		err := transfer.EachValue(ctx, im.db.pool, im.view, keys, func(ctx context.Context, key string, b []byte) error { return im.put(ctx, s, key, b) })
		if err != nil {
			err = fmt.Errorf("import %w", err)
		}
		return err
	}
	done := make(map[string]struct{}, len(im.documents))
	documents := func(yield func(string, error) bool) {
		for _, key := range im.documents {
			done[key] = struct{}{}
			if wanted(im.open.Version, key) && !yield(key, nil) {
				return
			}
		}
	}
	if err := transfer.Batches(documents, copyAll); err != nil {
		return err
	}
	return transfer.Batches(im.keys(ctx), func(keys []string) error {
		keys = slices.DeleteFunc(keys, func(key string) bool {
			_, ok := done[key]
			return ok
		})
		if err := copyAll(keys); err != nil {
			return err
		}
		return im.save(ctx, s)
	})
}

// dropStale deletes keys of the destination that the source does not have.
func (im *importer) dropStale(ctx context.Context, s *Session) error {
	next, stop := iter.Pull2(im.keys(ctx))
	defer stop()
	before, ours, err, more := "", "", error(nil), true // ours is the first key of the source from where we are
	advance := func() {
		if before = ours; more {
			ours, err, more = next()
			ours = strings.TrimPrefix(ours, im.prefix)
		}
	}
	o := kv.ListOptions{Prefix: im.to}
	for {
		folder, stale := "", []string(nil)
		for key, lerr := range s.List(ctx, o) {
			if lerr != nil {
				return lerr
			}
			o.After = key
			is := key[len(im.to):]
			for more && err == nil && ours < is {
				advance()
			}
			if err != nil {
				return err
			}
			if more && ours == is {
				continue
			}
			// The source's neighbouring keys determine the uppermost directory
			// that it lacks.
			for i := range len(is) {
				if is[i] == '/' && !strings.HasPrefix(before, is[:i+1]) && !(more && strings.HasPrefix(ours, is[:i+1])) {
					folder = im.to + is[:i+1]
					break
				}
			}
			if folder != "" {
				break
			}
			if stale = append(stale, key); len(stale) == transfer.BatchKeys {
				break
			}
		}
		if err := kv.DeleteAll(ctx, s, stale); err != nil {
			return err
		}
		if folder == "" && len(stale) < transfer.BatchKeys {
			return nil
		}
		if folder != "" {
			if err := s.DeletePrefix(ctx, folder); err != nil {
				return err
			}
		}
	}
}

// saveEvery bounds the work that a crash loses; tests make it small. A session
// also saves itself after every GiB.
var saveEvery = 10 * time.Second

func (im *importer) save(ctx context.Context, s *Session) error {
	// The caller's session is saved when the import is complete.
	if im.o.Session != nil || time.Since(im.saved) < saveEvery {
		return nil
	}
	im.saved = time.Now()
	return s.Savepoint(ctx)
}

// put stores one value.
func (im *importer) put(ctx context.Context, s *Session, key string, b []byte) error {
	if err := s.Set(ctx, im.to+strings.TrimPrefix(key, im.prefix), b); err != nil {
		return err
	}
	im.meter.Add(int64(len(b)), im.o.Progress)
	return nil
}
