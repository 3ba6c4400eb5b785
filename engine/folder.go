package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/checkout"
	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/txn"
)

// ErrNoFolder means that a directory was not made by [DB.Checkout], or was moved without the directory beside it.
var ErrNoFolder = checkout.ErrNone

// CheckoutOptions say what is checked out. The zero value is all of a version.
type CheckoutOptions struct {
	// Path is the node that becomes the root of the folder, and Only are paths below it, if not all is wanted. The documents of
	// groups above those are there too, without consolidated metadata. A folder that exists keeps its own if both are empty.
	Path string
	Only []string
	// Keep and Discard are paths of the folder, "" for all, where it has changes that the version does not have: they are kept as
	// changes of that version, or dropped. The longest path decides. Others make the error a conflict if they would be lost, and stay else.
	// Keep of "" makes a folder of a directory of files: what differs from the version is a change.
	Keep, Discard []string
	// Progress, if set, is called from time to time. Calls do not overlap.
	Progress func(Progress)
}

// FolderInfo describes a folder that was checked out.
type FolderInfo struct {
	Dir      string   `json:"dir"`
	Database string   `json:"database"`
	Branch   string   `json:"branch,omitempty"` // "" if another revision was checked out
	Commit   string   `json:"commit"`
	Path     string   `json:"path,omitempty"`
	Only     []string `json:"only,omitempty"`
	// Unfinished says that a checkout, or a commit, was interrupted; both go on with the next one.
	Unfinished bool `json:"unfinished,omitempty"`
}

// FolderChange is a file of a folder that differs from the version.
type FolderChange struct {
	Key  string `json:"key"`
	Node string `json:"node"` // the array or group that it belongs to
	Op   string `json:"op"`   // "added", "changed" or "removed"
}

// FolderStatus is what a folder has changed.
type FolderStatus struct {
	FolderInfo
	Changes []FolderChange `json:"changes"`
	// LeftOut are hidden and temporary files and locks, which are not committed.
	LeftOut []string `json:"left_out,omitempty"`
	fresh   []checkout.Entry
}

// CheckoutResult counts what a checkout changed in a folder.
type CheckoutResult struct {
	FolderInfo
	Written int64 `json:"written"` // files
	Removed int64 `json:"removed"`
	Bytes   int64 `json:"bytes"`
}

// FolderCommitOptions describe the commit of a folder.
type FolderCommitOptions struct {
	CommitOptions
	Branch   string // default the one that was checked out
	Verify   bool   // compare the bytes of all files
	Progress func(Progress)
}

// FolderCommit is the result of [DB.CommitFolder].
type FolderCommit struct {
	*FolderStatus // as it was before
	Commit        *Commit
	Base          CommitID // that the folder stood at
	Healed        int64
}

// OpenFolder describes a folder. It needs no database.
func OpenFolder(ctx context.Context, dir string) (*FolderInfo, error) {
	w, err := openFolder(ctx, nil, dir)
	if err != nil {
		return nil, err
	}
	defer w.close()
	info := w.info()
	return &info, nil
}

// StatusOfFolder lists what differs in a folder from its version, by key. verify compares the bytes of all files, not of those alone
// whose size, time or inode differ. Nothing is changed.
func StatusOfFolder(ctx context.Context, dir string, verify bool) (*FolderStatus, error) {
	w, err := openFolder(ctx, nil, dir)
	if err != nil {
		return nil, err
	}
	defer w.close()
	return w.status(ctx, verify)
}

// Checkout writes a version to a directory as plain Zarr, or moves a folder to another version. Files are written whole; an interrupted
// checkout goes on with the same call. The version is kept from expiring while the folder stands at it; see [DB.KeptVersions].
func (db *DB) Checkout(ctx context.Context, rev, dir string, o CheckoutOptions) (*CheckoutResult, error) {
	id, err := db.Resolve(ctx, rev)
	if err == nil {
		err = extent.Separate(extent.Extent{Path: dir}, extent.Extent{Path: db.Dir()})
	}
	if err != nil {
		return nil, fmt.Errorf("checkout: %w", err)
	}
	w, err := db.newFolder(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("checkout: %w", err)
	}
	defer w.close()
	w.o = o
	if w.st.Commit != "" {
		err = w.save(ctx) // the database may have moved
	}
	if err == nil {
		err = w.goOn(ctx)
	}
	if err == nil {
		w.st.Branch = ""
		if branches, _, rerr := db.Refs(ctx); rerr == nil && slices.ContainsFunc(branches, func(r Ref) bool { return r.Name == orMain(rev) }) {
			w.st.Branch = orMain(rev)
		}
		err = w.move(ctx, id)
	}
	if err != nil {
		if st, _ := w.b.Load(ctx); st == nil { // nothing was begun
			_, _ = os.RemoveAll(w.b.Side), os.Remove(w.b.Dir)
		}
		return nil, fmt.Errorf("checkout: %w", err)
	}
	w.res.FolderInfo = w.info()
	w.res.Bytes = w.meter.Bytes.Load()
	return &w.res, nil
}

func orMain(branch string) string { return cmp.Or(branch, txn.MainBranch) }

// folderWork is work on one folder, which it has locked if it has a database.
type folderWork struct {
	db       *DB
	b        *checkout.Beside
	st       *checkout.State
	scope    checkout.Scope
	o        CheckoutOptions
	adopting bool
	was      *Snapshot // the version that a move leaves, nil if it is not known
	meter    transfer.Meter
	res      CheckoutResult
	unlock   func()
}

// folderFault, if set, is called before each change of a folder; tests fail there.
var folderFault func(what string) error

func folderStep(what string) error {
	if folderFault != nil {
		return folderFault(what)
	}
	return nil
}

func openFolder(ctx context.Context, db *DB, dir string) (w *folderWork, err error) {
	w = &folderWork{db: db, unlock: func() {}}
	if w.b, err = checkout.Open(dir, false); err != nil {
		return nil, err
	}
	if db != nil {
		w.unlock, err = w.b.Lock(ctx)
	}
	if err == nil {
		w.st, err = w.b.Load(ctx)
	}
	if err == nil && w.st == nil {
		err = fmt.Errorf("%s: %w", dir, ErrNoFolder)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	w.scope = checkout.NewScope(w.st.Only)
	return w, nil
}

func (w *folderWork) close() {
	if w.unlock != nil {
		w.unlock()
	}
	_ = w.b.Close() // it has nothing to write
}

func (w *folderWork) info() FolderInfo {
	at := w.st.Database
	if near := filepath.Join(w.b.Dir, w.st.Near); !IsDatabase(at) && w.st.Near != "" && IsDatabase(near) {
		at = near
	}
	return FolderInfo{Dir: w.b.Dir, Database: at, Branch: w.st.Branch, Commit: w.st.Commit, Path: w.st.Path, Only: w.st.Only, Unfinished: w.st.Moving || w.st.Pending != nil}
}

// newFolder opens the folder that a checkout goes to, or begins one.
func (db *DB) newFolder(ctx context.Context, dir string, o CheckoutOptions) (w *folderWork, err error) {
	o.Path = names.Clean(o.Path)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	missing := err != nil
	w, err = openFolder(ctx, db, dir)
	switch {
	case err == nil:
		if err = w.fits(o); err == nil && missing {
			w.st.Commit, w.st.Index, w.st.Moving, w.st.Pending = "", "", true, nil // all is written again
		}
	case !errors.Is(err, ErrNoFolder):
		return nil, err
	case len(entries) > 0 && (len(o.Keep) != 1 || names.Clean(o.Keep[0]) != "" || len(o.Discard) > 0):
		return nil, fmt.Errorf("%s: %w: choose an empty or new directory (--keep / makes a folder of this one; what differs from the version is a change then)", dir, errThere)
	default:
		w = &folderWork{db: db, adopting: len(entries) > 0, scope: checkout.NewScope(o.Only), st: &checkout.State{Format: 1, Path: o.Path, Only: checkout.NewScope(o.Only)}}
		if err = os.MkdirAll(dir, 0o777); err == nil {
			w.b, err = checkout.Open(dir, true)
		}
		if err != nil {
			return nil, err
		}
		id := make([]byte, 4)
		_, _ = rand.Read(id) // it does not fail
		w.st.ID, w.st.Identity = hex.EncodeToString(id), db.Identity().Name
		w.unlock, err = w.b.Lock(ctx)
	}
	if err == nil {
		err = os.MkdirAll(w.b.Dir, 0o777)
	}
	if err == nil {
		w.st.Database, err = checkout.Real(db.Dir())
	}
	if err == nil {
		w.st.Near, _ = filepath.Rel(w.b.Dir, w.st.Database) // "" on another drive
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// fits refuses a checkout of something else than the folder has.
func (w *folderWork) fits(o CheckoutOptions) error {
	only := checkout.NewScope(o.Only)
	switch name := w.db.Identity().Name; {
	case w.st.Identity != name && w.st.Identity != "" && name != "":
		return fmt.Errorf("%s: %w: it is a folder of %s, which is another database", w.b.Dir, ErrExists, w.st.Database)
	case o.Path != "" && o.Path != w.st.Path, only != nil && !slices.Equal(only, w.scope):
		return fmt.Errorf("%s: %w: it is a folder of another part: /%s %s; choose a new directory for this one", w.b.Dir, ErrExists, w.st.Path, strings.Join(w.st.Only, " "))
	}
	return nil
}

// goOn ends what was interrupted: a commit whose outcome is not known, and a move to a version.
func (w *folderWork) goOn(ctx context.Context) error {
	if p := w.st.Pending; p != nil {
		made, err := w.db.madeBy(ctx, p)
		if err != nil {
			return fmt.Errorf("the outcome of an interrupted commit: %w", err)
		}
		if w.st.Pending = nil; made != (CommitID{}) {
			w.st.Branch, w.st.Commit, w.st.Index, w.st.Moving = p.Branch, made.String(), p.Index, true
		}
		if err := w.save(ctx); err != nil {
			return err
		}
	}
	if !w.st.Moving || w.st.Commit == "" {
		return nil
	}
	id, err := w.at(ctx)
	if err != nil {
		return err
	}
	return w.move(ctx, id)
}

// madeBy returns the commit that a session made, the zero one if it made none. It makes none after that.
func (db *DB) madeBy(ctx context.Context, p *checkout.Pending) (CommitID, error) {
	id, err := txn.ParseSessionID(p.Session)
	if err != nil {
		return CommitID{}, err
	}
	if err := db.AbortSession(ctx, id); err != nil && !errors.Is(err, txn.ErrNoRef) {
		return CommitID{}, err
	}
	for m, err := range db.Reflog(ctx, p.Branch) {
		if err != nil {
			return CommitID{}, err
		}
		if m.Session == id {
			return m.New, nil
		}
	}
	return CommitID{}, nil
}

func (w *folderWork) save(ctx context.Context) error {
	if err := folderStep("state"); err != nil {
		return err
	}
	return w.b.Save(ctx, w.st)
}

// at is the commit that the folder stands at.
func (w *folderWork) at(ctx context.Context) (CommitID, error) {
	id, err := w.db.Resolve(ctx, w.st.Commit)
	if err != nil {
		err = fmt.Errorf("%s stands at version %.10s: %w", w.b.Dir, w.st.Commit, err)
	}
	return id, err
}

// keep keeps a version from expiring for the folder, and lets others go once it stands at this one.
func (w *folderWork) keep(ctx context.Context, id CommitID) error {
	return w.db.store.KeepVersion(ctx, w.kept(id.String()), id, "the folder "+w.b.Dir)
}

func (w *folderWork) kept(commit string) string { return "folder/" + w.st.ID + "/" + commit[:10] }

func (w *folderWork) keepOnly(ctx context.Context) error {
	list, err := w.db.KeptVersions(ctx)
	for _, k := range list {
		if strings.HasPrefix(k.Name, "folder/"+w.st.ID+"/") && k.Name != w.kept(w.st.Commit) && err == nil {
			err = w.db.EndKept(ctx, k.Name)
		}
	}
	return err
}

// wants lists what a version has for the folder.
func (w *folderWork) wants(ctx context.Context, at *Snapshot) iter.Seq2[checkout.Want, error] {
	prefix := w.st.Prefix()
	want := func(key string) (checkout.Want, error) {
		v, err := at.Locate(ctx, prefix+key)
		out := checkout.Want{Key: key, Value: v}
		if err == nil {
			out.Ref = v.ID()
		}
		if err == nil && out.Ref == (kv.ID{}) { // nothing tells versions of the file that is linked
			var link txn.KeyValue
			link, err = at.Value(ctx, prefix+key)
			out.Ref = kv.ID(digest.Of(fmt.Append(nil, link)))
		}
		if err == nil && path.Base(key) == names.V3 && w.scope.Above(key) {
			var doc []byte
			if doc, err = kv.ReadValue(ctx, v, kv.All()); err == nil {
				if copies, rest := (policy.Policy{}).Copies(names.V3, doc); copies != nil {
					out.Doc = rest
				}
			}
		}
		return out, err
	}
	return func(yield func(checkout.Want, error) bool) {
		for _, p := range w.scope.Prefixes() {
			keys := iter.Seq2[string, error](func(yield func(string, error) bool) { yield(prefix+p, nil) })
			if p == "" || strings.HasSuffix(p, "/") {
				keys = at.List(ctx, kv.ListOptions{Prefix: prefix + p})
			}
			for key, err := range keys {
				var out checkout.Want
				if err == nil {
					out, err = want(key[len(prefix):])
				}
				if errors.Is(err, kv.ErrNotFound) {
					continue // a document that the group has not
				}
				if !yield(out, err) || err != nil {
					return
				}
			}
		}
	}
}

func none[T any](func(T, error) bool) {}

// join goes through the folder, its index and a version, nil for none. Files of tools are left to leave.
func (w *folderWork) join(ctx context.Context, dir *dirkv.Store, at *Snapshot, verify bool, leave func(key string), fn func(s *checkout.Step, same bool, sum func() (digest.Sum, error)) error) error {
	entries, indexed, err := w.b.Index(w.st.Index)
	if err != nil {
		return err
	}
	wants := iter.Seq2[checkout.Want, error](none[checkout.Want])
	if at != nil {
		wants = w.wants(ctx, at)
	}
	in := ""
	for s, err := range checkout.Join(entries, wants, checkout.Files(ctx, dir)) {
		if err != nil {
			return err
		}
		if above := filepath.Join(w.b.Dir, filepath.FromSlash(names.Parent(s.Key))); s.File != nil && above != in {
			in = above
			if real, err := filepath.EvalSymlinks(above); err == nil && real != above { // a removal would be one of other files
				return fmt.Errorf("%s: a symbolic link leads to %s: make it a directory with copies, or remove it", names.Parent(s.Key), real)
			}
		}
		if s.Entry == nil && s.Want == nil && checkout.LeftOut(s.Key) {
			leave(s.Key)
			continue
		}
		known := false
		var is digest.Sum
		sum := func() (digest.Sum, error) {
			if known {
				return is, nil
			}
			known = true
			return is, transfer.ViewWhole(ctx, s.File.Value, func(b []byte) error { is = digest.Of(b); return nil })
		}
		same, err := s.Same(indexed, verify, sum)
		if err == nil {
			err = fn(&s, same, sum)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Key, err)
		}
	}
	return nil
}

// wantSum is the sum of the bytes that a version has.
func (w *folderWork) wantSum(ctx context.Context, at *Snapshot, want *checkout.Want) (sum digest.Sum, err error) {
	if want.Doc != nil {
		return digest.Of(want.Doc), nil
	}
	if v, err := at.Value(ctx, w.st.Prefix()+want.Key); err != nil || v.Kind != "virtual" {
		return digest.Sum(want.Ref), err
	}
	return sum, transfer.ViewWhole(ctx, want.Value, func(b []byte) error { sum = digest.Of(b); return nil })
}

// choice returns what becomes of a change that the version does not have.
func (w *folderWork) choice(key string) checkout.Choice {
	longest, c := -1, checkout.Refuse
	look := func(to checkout.Choice, paths []string) {
		for _, p := range paths {
			if p = names.Clean(p); len(p) > longest && (p == "" || key == p || strings.HasPrefix(key, names.Dir(p))) {
				longest, c = len(p), to
			}
		}
	}
	look(checkout.Keep, w.o.Keep) // it decides where both have the same path
	look(checkout.Discard, w.o.Discard)
	return c
}

// steps decides about every file, on the way from the index to a version.
func (w *folderWork) steps(ctx context.Context, dir *dirkv.Store, at *Snapshot, fn func(s *checkout.Step, a checkout.Action) error) error {
	return w.join(ctx, dir, at, false, func(string) {}, func(s *checkout.Step, same bool, sum func() (digest.Sum, error)) error {
		equals := false
		if !same && s.File != nil && s.Want != nil {
			is, err := sum()
			if equals = err == nil && kv.ID(is) == s.Want.Ref; err == nil && !equals {
				var want digest.Sum
				want, err = w.wantSum(ctx, at, s.Want)
				equals = want == is
			}
			if err != nil {
				return err
			}
		}
		c := w.choice(s.Key)
		a := s.Decide(same, equals, w.adopting, c)
		if !same && c == checkout.Refuse && (a == checkout.Stay || a == checkout.Nothing && s.File != nil) {
			if other, err := w.replaced(ctx, at, s.Key); err != nil {
				return err
			} else if other {
				a = checkout.Lost
			}
		}
		return fn(s, a)
	})
}

// replaced reports whether the array that a file is part of is another one in a version: a chunk of that number has another place then.
func (w *folderWork) replaced(ctx context.Context, at *Snapshot, key string) (bool, error) {
	if w.was == nil {
		return false, nil
	}
	for p := w.st.Prefix() + key; p != ""; {
		p = names.Parent(p)
		if same, ok, err := w.was.at.SameArray(ctx, at.at, p); ok || err != nil {
			return !same, err
		}
	}
	return false, nil
}

// move makes the files those of a version: first it looks at all, and changes nothing if a change would be lost; then files go, and
// others are written beside the folder, synced and renamed into it.
func (w *folderWork) move(ctx context.Context, id CommitID) error {
	at, err := w.db.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	defer at.Close()
	if w.was = nil; w.st.Commit != "" && !w.st.Moving {
		was, err := w.at(ctx)
		if err == nil {
			w.was, err = w.db.Snapshot(ctx, was)
		}
		switch {
		case err == nil:
			defer w.was.Close()
		case !errors.Is(err, txn.ErrNoRef): // else it has expired
			return err
		}
	}
	dir, err := dirkv.Open(w.b.Dir, &dirkv.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, p := range append([]string{""}, w.scope...) {
		p = names.Join(w.st.Path, p)
		if found, err := kv.Any(ctx, at, names.Dir(p)); err != nil || !found && p != "" {
			return cmp.Or(err, notFound("version "+id.Short(), p))
		}
	}
	lost, remove, err := w.look(ctx, dir, at)
	if w.was = nil; err == nil && lost.All > 0 { // what is removed from here on is no change of a tool
		err = lost
	}
	if err == nil {
		err = w.keep(ctx, id)
	}
	if err != nil {
		return err
	}
	w.st.Commit, w.st.Moving = id.String(), !w.adopting
	if !w.adopting { // else nothing is noted before all is
		if err := w.save(ctx); err != nil {
			return err
		}
	}
	for _, f := range remove {
		if err := w.unchanged(ctx, dir, f.Key, f); err != nil {
			return err
		}
		if err := folderStep("remove"); err != nil {
			return err
		}
		if err := dir.Delete(ctx, f.Key); err != nil {
			return err
		}
		w.res.Removed++
	}
	index, err := w.write(ctx, dir, at)
	if err == nil {
		err = dir.Sync(ctx)
	}
	if err != nil {
		return err
	}
	w.st.Index, w.st.Moving = index, false
	if err := w.save(ctx); err != nil {
		return err
	}
	return w.keepOnly(ctx)
}

// maxLost bounds the files that an error names.
const maxLost = 5

// look returns the changes that a move would lose, and the files to remove. It refuses names that cannot be files.
func (w *folderWork) look(ctx context.Context, dir *dirkv.Store, at *Snapshot) (lost *checkout.LostError, remove []*checkout.File, err error) {
	lost = &checkout.LostError{Dir: w.b.Dir, Moving: w.st.Moving}
	var folds checkout.Folds
	if other := filepath.Join(filepath.Dir(w.b.Side), strings.ToUpper(filepath.Base(w.b.Side))); isThere(other) {
		folds = checkout.Folds{}
	}
	w.meter.Total = 0
	err = w.steps(ctx, dir, at, func(s *checkout.Step, a checkout.Action) error {
		switch a {
		case checkout.Lost:
			if lost.All++; len(lost.Keys) < maxLost {
				lost.Keys = append(lost.Keys, s.Key)
			}
		case checkout.Remove:
			if s.File != nil {
				remove = append(remove, s.File)
			}
		case checkout.Write:
			w.meter.Total++
			if err := dirkv.CheckKey(s.Key); err != nil {
				return err
			}
		}
		if s.Want != nil && folds != nil {
			return folds.Add(s.Key)
		}
		return nil
	})
	return lost, remove, err
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// unchanged makes sure that a file is still the one that was decided about, nil for none.
func (w *folderWork) unchanged(ctx context.Context, dir *dirkv.Store, key string, f *checkout.File) error {
	v, err := dir.Locate(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound) && f == nil:
		return nil
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return err
	case err != nil || f == nil || checkout.Sealed(v) != checkout.Sealed(f.Value):
		return fmt.Errorf("%s: %w while the folder was moved to version %.10s: end the program that writes it, and repeat the checkout", key, kv.ErrChanged, w.st.Commit)
	}
	return nil
}

// write writes the files that differ, and the index of all.
func (w *folderWork) write(ctx context.Context, dir *dirkv.Store, at *Snapshot) (index string, err error) {
	side := filepath.Join(w.b.Side, "stage")
	if err := os.RemoveAll(side); err != nil {
		return "", err
	}
	stage, err := dirkv.Create(side, &dirkv.Options{NoSync: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, stage.Close(), os.RemoveAll(side)) }()
	root, err := os.OpenRoot(filepath.Dir(w.b.Dir))
	if err != nil {
		return "", err
	}
	defer root.Close()
	return w.b.NewIndex(func(add func(checkout.Entry) error) error {
		var steps []checkout.Step // with the entries before them
		writes := 0
		flush := func() error {
			if writes > 0 {
				if err := w.writeBatch(ctx, root, stage, dir, at, steps); err != nil {
					return err
				}
			}
			for i := range steps {
				if err := add(*steps[i].Entry); err != nil {
					return err
				}
			}
			steps, writes = steps[:0], 0
			return nil
		}
		err := w.steps(ctx, dir, at, func(s *checkout.Step, a checkout.Action) error {
			switch a {
			case checkout.Lost:
				return fmt.Errorf("%w while the folder was moved: repeat the checkout", kv.ErrChanged)
			case checkout.Stay:
				s.Want = nil
			case checkout.Adopt, checkout.Take:
				sum, err := w.wantSum(ctx, at, s.Want)
				if err != nil {
					return err
				}
				s.Entry = &checkout.Entry{Key: s.Key, Ref: s.Want.Ref, Sum: sum}
				if a == checkout.Adopt {
					s.Entry.Mark = s.File.Mark
				}
				s.Want = nil
			case checkout.Write:
				s.Entry = &checkout.Entry{Key: s.Key, Ref: s.Want.Ref}
				writes++
			default:
				return nil
			}
			steps = append(steps, *s)
			if writes == transfer.BatchKeys || len(steps) == 16*transfer.BatchKeys {
				return flush()
			}
			return nil
		})
		if err != nil {
			return err
		}
		return flush()
	})
}

// writeBatch writes the files of the steps that have a Want, and completes their entries.
func (w *folderWork) writeBatch(ctx context.Context, root *os.Root, stage, dir *dirkv.Store, at *Snapshot, steps []checkout.Step) error {
	prefix := w.st.Prefix()
	number, staged := map[string]int{}, make([]kv.Value, len(steps))
	var keys []string
	for i, s := range steps {
		if s.Want != nil {
			if number[prefix+s.Key] = i; s.Want.Doc == nil {
				keys = append(keys, prefix+s.Key)
			}
		}
	}
	put := func(ctx context.Context, key string, b []byte) error {
		n := number[key]
		name := strconv.Itoa(n)
		if err := stage.Set(ctx, name, b); err != nil {
			return err
		}
		steps[n].Entry.Sum = digest.Of(b)
		w.meter.Add(int64(len(b)), w.o.Progress)
		var err error
		staged[n], err = stage.Locate(ctx, name)
		return err
	}
	for key, i := range number {
		if doc := steps[i].Want.Doc; doc != nil {
			if err := put(ctx, key, doc); err != nil {
				return err
			}
		}
	}
	err := transfer.EachValue(ctx, w.db.pool, at, keys, put)
	if err == nil {
		err = stage.Sync(ctx)
	}
	if err != nil {
		return err
	}
	base, from := filepath.Base(w.b.Dir), filepath.Join(filepath.Base(w.b.Side), "stage")
	for i := range steps {
		s := &steps[i]
		if s.Want == nil {
			continue
		}
		err := w.unchanged(ctx, dir, s.Key, s.File)
		if err == nil {
			err = folderStep("write")
		}
		to := filepath.Join(base, filepath.FromSlash(s.Key))
		if err == nil {
			err = root.MkdirAll(filepath.Dir(to), 0o777)
		}
		if err == nil {
			if info, serr := root.Lstat(to); serr == nil && info.IsDir() {
				err = root.Remove(to) // if it is empty
			}
		}
		if err == nil {
			err = root.Rename(filepath.Join(from, strconv.Itoa(i)), to)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", s.Key, err)
		}
		if now, err := dir.Locate(ctx, s.Key); err == nil {
			s.Entry.Mark = checkout.Renamed(staged[i], now)
		} // else its bytes are compared
		w.res.Written++
		s.Want = nil
	}
	return nil
}
