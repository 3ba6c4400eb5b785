package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// A session that other programs find by its id has a log, sessions/ID.log: what was done
// since the last savepoint, written before each call returns and not synced. So it is
// there after the process was killed; after a power loss the last savepoint counts.
//
//	Set ──▶ payload to its pack ──▶ entry with its address and hash to the log ──▶ buffer
//	savepoint ──▶ record in the index, synced ──▶ the log is removed
//	Open after a kill ──▶ each log is applied to its savepoint ──▶ savepoint ──▶ removed
//
// The log names the savepoint that it goes on from by the hash of its record. If there is
// another record, the log is older than that and has nothing more; if there is none, the
// session was committed or aborted. A session without a savepoint has no record that its
// commit could remove: the batch of the commit adds the session to a list; see endedLogs.
//
// An entry names a payload behind the recorded end of its pack. Nothing overwrites such
// bytes, but they are no part of the pack. So Open compares them with their hash, and
// stores them again.

const (
	logDir    = "sessions"
	logSuffix = ".log"
	// maxLog is the size at which a log makes a savepoint due.
	maxLog = 64 << 20
)

// sessionLog is the state of a log. The zero value is a session without one.
type sessionLog struct {
	on   bool
	size int64 // of the file; 0 if there is none
	// stored is the hash of the session's record, zero without one; saved is the state
	// that the record has, and guards the number of its guards.
	stored digest.Sum
	saved  tree.Root
	guards int
}

// Log makes every later change of the session survive when this process is killed, before
// the call returns. [Open] applies such changes to the last savepoint. It costs a write to
// a file for each change, which is not synced: after a power loss the last savepoint
// counts. Savepoint and DB.Close work as without a log.
func (s *Session) Log(ctx context.Context) error { return s.home.log(ctx) }

func (s own) log(ctx context.Context) error {
	if err := s.changing.Lock(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	switch {
	case s.logged.on:
		return nil // also while a commit is under way
	case s.state != sessionOpen:
		return ErrSessionClosed
	}
	if len(s.buf) > 0 || s.work != s.logged.saved || len(s.guards) != s.logged.guards {
		if err := s.savepoint(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged.on = true
	return nil
}

func (db *DB) logPath(id SessionID) string {
	return db.opts.FS.PathJoin(db.dir, logDir, id.String()+logSuffix)
}

// note adds an entry to the log, if the session has one. After an error the next entry
// takes its place. The caller holds changing.
func (s *Session) note(e *catalog.Entry) error {
	if !s.logged.on {
		return nil
	}
	// After a write of the index that failed, nobody knows which record the session has,
	// and a log that goes on from another one is void.
	if err := s.db.idx.Writable(); err != nil {
		return err
	}
	var b []byte
	if s.logged.size == 0 {
		b = s.logStart()
	}
	b = catalog.AppendEntry(b, e)
	if err := s.db.writeLog(s.id, b, s.logged.size); err != nil {
		if care.DiskFull(err) {
			err = fmt.Errorf("%w: %w", pack.ErrFull, err)
		}
		return fmt.Errorf("log of session %v: %w", s.id, err)
	}
	s.logged.size += int64(len(b))
	return nil
}

// logStart is the beginning of a log that goes on from the last savepoint.
func (s *Session) logStart() []byte {
	return catalog.AppendEntry([]byte(catalog.LogHeader), &catalog.Entry{Kind: catalog.EntryBegin, Stored: s.logged.stored, Session: s.record(s.logged.saved)})
}

// renewLog ends the log after a savepoint. Where its file cannot be removed, one that goes on from
// the savepoint takes its place. Without either, the session may come back after it has ended, which
// is an error of background work: the savepoint is made. The caller holds changing.
func (s *Session) renewLog(stored digest.Sum, saved tree.Root, guards int) {
	err := s.dropLog(false)
	s.logged.size = 0
	s.logged.stored, s.logged.saved, s.logged.guards = stored, saved, guards
	if err == nil {
		return
	}
	start := s.logStart()
	if s.db.writeLog(s.id, start, 0) == nil {
		s.logged.size = int64(len(start))
		return
	}
	s.db.care.Failures.Note(care.WorkLog, fmt.Errorf("session %v: remove the log of an earlier state: %w", s.id, err))
}

// noteEdit adds an edit to the log. The caller holds changing.
func (s *Session) noteEdit(e *namespace.Edit) error {
	entry := &catalog.Entry{Kind: catalog.EntryPut, Key: e.Key, Value: e.Value}
	switch {
	case !s.logged.on:
		return nil
	case e.Delete:
		entry.Kind = catalog.EntryDelete
	case e.Value.Kind == tree.KindNative:
		if err := s.db.packs.Flush(catalog.AddressOf(e.Value)); err != nil {
			return err
		}
	}
	return s.note(entry)
}

// endedLogs are the sessions without a savepoint that were committed, so that their logs are
// void. A session stays in the list until no power loss brings its log back: until the
// directory was synced after the log was removed. One sync serves many logs.
type endedLogs struct {
	mu   sync.Mutex
	ids  []SessionID            // as in the index
	gone map[SessionID]struct{} // those of ids whose logs were removed
}

// maxGone is how many logs are removed before the directory is synced.
const maxGone = 64

// load reads the list when the logs have been applied.
func (e *endedLogs) load(db *DB) {
	ids, err := catalog.Ended(db.idx)
	if err != nil {
		return // readLog has kept the logs
	}
	e.ids, e.gone = ids, map[SessionID]struct{}{}
	for _, id := range ids {
		if !exists(db.fs, db.logPath(id)) {
			e.gone[id] = struct{}{}
		}
	}
}

func (e *endedLogs) has(id SessionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.ids, id)
}

// removed notes that the log of a session was removed.
func (e *endedLogs) removed(id SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.ids, id) {
		if e.gone == nil {
			e.gone = map[SessionID]struct{}{}
		}
		e.gone[id] = struct{}{}
	}
}

// noteEnded adds sessions to the list, in a batch. The caller holds ends, and calls written
// when the batch is on disk.
func (db *DB) noteEnded(batch *index.Batch, ids []SessionID) (written func()) {
	if len(ids) == 0 {
		return func() {}
	}
	e := &db.ended
	e.mu.Lock()
	list, gone := slices.Clone(e.ids), maps.Clone(e.gone)
	e.mu.Unlock()
	if len(gone) >= maxGone && index.SyncDir(db.fs, db.fs.PathJoin(db.dir, logDir)) == nil {
		list = slices.DeleteFunc(list, func(id SessionID) bool {
			_, ok := gone[id]
			return ok
		})
	}
	list = append(list, ids...)
	catalog.PutEnded(batch, list)
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ids = list
		maps.DeleteFunc(e.gone, func(id SessionID, _ struct{}) bool { return !slices.Contains(list, id) })
	}
}

// writeLog writes to the log of a session at an offset, or a new one at 0. No file is
// kept open, however many sessions there are.
func (db *DB) writeLog(id SessionID, b []byte, at int64) error {
	fs, path := db.opts.FS, db.logPath(id)
	var f interface {
		io.WriterAt
		io.Closer
	}
	var err error
	if at > 0 {
		f, err = fs.OpenReadWrite(path, index.WriteCategory)
	} else if f, err = fs.Create(path, index.WriteCategory); errors.Is(err, os.ErrNotExist) { // an older log may be there
		if err = fs.MkdirAll(fs.PathDir(path), 0o777); err == nil {
			f, err = fs.Create(path, index.WriteCategory)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, at)
	return errors.Join(err, f.Close())
}

// logRoom makes a savepoint where the log needs one. The caller holds changing.
func (s *Session) logRoom(ctx context.Context) error {
	if s.logged.on && s.logged.size >= maxLog {
		return s.savepoint(ctx)
	}
	return nil
}

// dropLog removes the log: a savepoint has what it has, or the session has ended. If the
// file cannot be removed, or comes back after a power loss, its commit or the record that it
// names tells that. A log that names neither is removed durably: it would bring the session
// back after the session has ended. The caller holds changing.
func (s *Session) dropLog(committed bool) error {
	if s.logged.size > 0 {
		if err := s.db.removeLog(s.id, !committed && s.logged.stored.IsZero()); err != nil {
			return err
		}
		s.db.ended.removed(s.id)
	}
	s.logged.size = 0
	return nil
}

// removeLog removes the log of a session, if there is one.
func (db *DB) removeLog(id SessionID, durably bool) error {
	fs, path := db.opts.FS, db.logPath(id)
	err := fs.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || !durably {
		return err
	}
	return index.SyncDir(fs, fs.PathDir(path))
}

// recoverLogs applies the logs that a killed process left. Those that cannot be applied now, as
// on a full disk, stay: [DB.Resume] tries again, and until then nothing is collected.
func (db *DB) recoverLogs(ctx context.Context) {
	// Without the directory, or the right to read it, there are no names.
	names, _ := db.opts.FS.List(db.opts.FS.PathJoin(db.dir, logDir))
	for _, name := range names {
		hex, ok := strings.CutSuffix(name, logSuffix)
		id, idErr := ParseSessionID(hex)
		if !ok || idErr != nil {
			continue
		}
		if err := db.recoverLog(ctx, id); err != nil {
			if db.unapplied == nil {
				db.unapplied = map[SessionID]error{}
			}
			db.unapplied[id] = err
		}
	}
}

// retryLog is recoverLog for a log that could not be applied when the database was opened.
func (db *DB) retryLog(ctx context.Context, id SessionID) error {
	if err := db.applying.Lock(ctx); err != nil {
		return err
	}
	defer db.applying.Unlock()
	if _, ok := db.unapplied[id]; !ok {
		return nil
	}
	err := db.recoverLog(ctx, id)
	if err == nil {
		delete(db.unapplied, id)
	}
	return err
}

// retryAway applies the logs that need what is away, which is not fetched while the database is opened.
func (db *DB) retryAway(ctx context.Context) error {
	if err := db.applying.Lock(ctx); err != nil {
		return err
	}
	var again []SessionID
	for id, err := range db.unapplied {
		if errors.Is(err, away.ErrLocked) {
			again = append(again, id)
		}
	}
	db.applying.Unlock()
	for _, id := range again {
		if err := db.retryLog(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// unappliedLog returns the error of a log that waits to be applied.
func (db *DB) unappliedLog(ctx context.Context) error {
	if err := db.applying.Lock(ctx); err != nil {
		return err
	}
	defer db.applying.Unlock()
	for id, err := range db.unapplied {
		if care.DiskFull(err) {
			return fmt.Errorf("%w; free space and open the session again, or abort session %v", err, id)
		}
		return fmt.Errorf("%w; abort session %v to go on without its changes", err, id)
	}
	return nil
}

// recoverLog applies the log of a session to its last savepoint, makes another one, and
// removes the log. Where changes are lost, the log goes to the quarantine, and an error of
// background work names them.
func (db *DB) recoverLog(ctx context.Context, id SessionID) (err error) {
	defer wrap(&err, "take up session %v from its log", id)
	entries, err := db.readLog(id)
	var lost []string
	if err == nil && len(entries) > 0 {
		lost, err = db.applyLog(ctx, entries)
	}
	if err != nil {
		return err
	}
	if len(lost) == 0 {
		return db.removeLog(id, true)
	}
	kept, err := care.SetAside(db.opts.FS, db.dir, db.logPath(id), db.opts.Now())
	if err != nil {
		return err
	}
	const named = 8
	what := strings.Join(lost[:min(len(lost), named)], ", ")
	if more := len(lost) - named; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	db.care.Failures.Note(care.WorkLog, fmt.Errorf("session %v lacks changes, of which the first is damaged: %s; write them again before its commit, or abort it; its log is now %s", id, what, kept))
	return nil
}

// readLog reads a log. It returns no entries if the session has ended, or has a later
// savepoint.
func (db *DB) readLog(id SessionID) (entries []*catalog.Entry, err error) {
	f, err := db.opts.FS.Open(db.logPath(id))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	b, ok := bytes.CutPrefix(b, []byte(catalog.LogHeader))
	if !ok && bytes.HasPrefix(b, []byte(catalog.LogHeader[:len(catalog.LogHeader)-2])) {
		return nil, errors.New("a newer zarrdb wrote the log; continue or abort the session with that program")
	}
	for e, err := range catalog.Entries(b) {
		if err != nil {
			return nil, err
		}
		if entries = append(entries, e); e.Kind != catalog.EntryCommit {
			continue
		}
		switch _, err := db.Lookup(context.Background(), e.Commit); {
		case err == nil:
			return nil, nil
		case !errors.Is(err, ErrNoRef):
			return nil, err
		}
	}
	if len(entries) > 0 && entries[0].Kind == catalog.EntryDamaged {
		return nil, catalog.Corrupt("the beginning of the log")
	}
	if len(entries) == 0 || entries[0].Kind != catalog.EntryBegin || entries[0].Session.ID != id {
		return nil, nil // the power went: nothing of it is sure
	}
	if ended, err := catalog.Ended(db.idx); err != nil || slices.Contains(ended, id) {
		return nil, err
	}
	record, err := catalog.Sessions.Record(db.idx, id)
	switch {
	case errors.Is(err, index.ErrNotFound) && entries[0].Stored.IsZero():
	case errors.Is(err, index.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case digest.Of(record) != entries[0].Stored:
		return nil, nil
	}
	return entries, nil
}

// applyLog applies the entries of a log and makes a savepoint. It ends at the first change whose bytes are
// damaged, or were not on disk when the power went, so that the session is as it was once: lost
// names that change and those behind it.
func (db *DB) applyLog(ctx context.Context, entries []*catalog.Entry) (lost []string, err error) {
	s, err := db.openSession(ctx, entries[0].Session)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.recovering = true
	s.stored = !entries[0].Stored.IsZero()
	for i, e := range entries[1:] {
		err := s.apply(ctx, e)
		if errors.Is(err, kv.ErrCorrupt) {
			for _, e := range entries[1+i:] {
				lost = append(lost, e.String())
			}
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(lost) > 0 {
		s.SetLabel(strings.TrimSpace(fmt.Sprintf("%s (lacks %d lost changes)", s.Label(), len(lost))))
	}
	return lost, s.Savepoint(ctx)
}

// apply does what an entry of a log says. It is kv.ErrCorrupt if the payload of a value is
// not there.
func (s *Session) apply(ctx context.Context, e *catalog.Entry) error {
	switch e.Kind {
	case catalog.EntryPut:
		v := e.Value
		if v.Kind == tree.KindNative && !s.db.packs.Durable(catalog.AddressOf(v)) {
			b, err := s.db.load(ctx, v)
			if err != nil {
				return err
			}
			if digest.Of(b) != v.Sum {
				return catalog.Corrupt("payload of %s", e.Key)
			}
			owner, err := s.owner(ctx, e.Key)
			if err != nil {
				return err
			}
			if v, err = s.home.store(ctx, owner, b, v.Sum); err != nil {
				return err
			}
		}
		return s.put(ctx, namespace.Edit{Key: e.Key, Value: v}, nil)
	case catalog.EntryDelete:
		return s.Delete(ctx, e.Key)
	case catalog.EntryPrefix:
		return s.DeletePrefix(ctx, e.Key)
	case catalog.EntryMove:
		return s.Move(ctx, e.Key, e.To)
	case catalog.EntryGuard:
		return s.Guard(ctx, e.Paths...)
	case catalog.EntryDamaged:
		return catalog.Corrupt("an entry of the log")
	}
	return nil // a commit that was not made
}
