package index

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Pebble reads the logs that it finds. A log that is gone is none to it: the
// index opens without what was in it. So an empty file in the directory says by
// its name which logs are there:
//
//	marker.logs.000007.12-15          logs 12 and 15
//	marker.logs.000008.12-15+34512    and 15 was closed, with that many bytes
//
// The name holds whatever happens, for two reasons. It is written when the
// directory with the log was synced and nothing in the log was yet: so a log that
// is named was there, and one that holds a commit is named. And a log goes only
// when the list of tables says, on disk, that everything in it is in tables: so
// one that is named and not there may be missed by nobody but who begins to read
// at a log before it. Open gives Pebble a list of files with all that are named,
// and an error for the one that it opens in vain.
//
// An index without such a file is opened as it is, and one that older programs
// wrote to meanwhile too: they leave logs with higher numbers, and what is in the
// others is in tables. Where the list of tables has a copy there is a mark or a log:
// an index that has logs and no mark gets one before anything else is done to it, and
// no list is copied before there is a log. If both are gone, opening is an error too.
const markPrefix = "marker.logs."

// maxMarked bounds how many logs are named, so that the name is one: the newest
// ones are. There are as many as memtables, and those that wait to be removed.
const maxMarked = 12

// markedLog is a log that is in the directory.
type markedLog struct {
	number uint64
	size   uint64 // that it was closed with; 0 if it was not
}

func (m markedLog) name() string { return fmt.Sprintf("%06d.log", m.number) }

// formatLogMark returns what names the newest of logs, which are in order.
func formatLogMark(logs []markedLog) string {
	var b strings.Builder
	for i, m := range logs[max(0, len(logs)-maxMarked):] {
		if i > 0 {
			b.WriteByte('-')
		}
		b.WriteString(strconv.FormatUint(m.number, 10))
		if m.size > 0 {
			b.WriteByte('+')
			b.WriteString(strconv.FormatUint(m.size, 10))
		}
	}
	return b.String()
}

// parseLogMark reads the name of a file. ok is false if it is no such mark; iter
// is higher for newer ones.
func parseLogMark(name string) (iter uint64, logs []markedLog, ok bool) {
	rest, ok := strings.CutPrefix(name, markPrefix)
	if !ok {
		return 0, nil, false
	}
	digits, list, ok := strings.Cut(rest, ".")
	iter, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil {
		return 0, nil, false
	}
	for item := range strings.SplitSeq(list, "-") {
		number, size, closed := strings.Cut(item, "+")
		m := markedLog{}
		if m.number, err = strconv.ParseUint(number, 10, 63); err != nil {
			return 0, nil, false
		}
		if closed {
			if m.size, err = strconv.ParseUint(size, 10, 63); err != nil {
				return 0, nil, false
			}
		}
		logs = append(logs, m)
	}
	return iter, logs, true
}

// writeLogMark makes a mark, durably.
func writeLogMark(fs vfs.FS, dir string, iter uint64, logs []markedLog) (path string, err error) {
	path = fs.PathJoin(dir, fmt.Sprintf("%s%06d.%s", markPrefix, iter, formatLogMark(logs)))
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = syncDir(fs, dir)
	}
	return path, err
}

// markLogs names the logs that are in dir, which nobody has open.
func markLogs(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	if logs := logsIn(names); len(logs) > 0 {
		_, err = writeLogMark(fs, dir, 1, logs)
	}
	return err
}

// logsIn returns the logs among the files of a directory, in order.
func logsIn(names []string) (logs []markedLog) {
	for _, name := range names {
		if n := logFileNumber(name); n > 0 {
			logs = append(logs, markedLog{number: n})
		}
	}
	slices.SortFunc(logs, compareLogs)
	return logs
}

func compareLogs(a, b markedLog) int { return cmp.Compare(a.number, b.number) }

// logFileNumber is the number of a log by the name of its file, 0 if it is none.
func logFileNumber(name string) uint64 {
	digits, _ := strings.CutSuffix(name, ".log")
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || (markedLog{number: n}).name() != name {
		return 0
	}
	return n
}

// logMarks keeps the mark of an open index.
type logMarks struct {
	synced atomic.Pointer[markedLog] // the last log that was synced, and how far

	moving sync.Mutex // one mark after the other; above mu

	mu      sync.Mutex
	logs    []markedLog // in the directory, durably
	made    []uint64    // perhaps not durably
	missing map[string]markedLog
	closed  map[string]uint64 // sizes by the mark that was found
	iter    uint64            // of the newest mark
	path    string            // of it
	moved   bool              // since Open
}

// find reads the marks in names, the files of the directory. It returns older ones,
// which a crash can leave.
func (m *logMarks) find(names []string) (older []string) {
	newest := ""
	for _, name := range names {
		iter, logs, ok := parseLogMark(name)
		switch {
		case !ok:
			continue
		case newest != "" && iter <= m.iter:
			older = append(older, name)
			continue
		case newest != "":
			older = append(older, newest)
		}
		newest, m.iter, m.logs = name, iter, logs
	}
	m.missing, m.closed = map[string]markedLog{}, map[string]uint64{}
	m.path = newest
	here := m.logs[:0]
	for _, l := range m.logs {
		m.closed[l.name()] = l.size
		if slices.Contains(names, l.name()) {
			here = append(here, l)
		} else {
			m.missing[l.name()] = l
		}
	}
	m.logs = here
	return older
}

// readMarks looks which logs must be there, and which copies of lists need not. It is
// called once, before Pebble opens the directory.
func (g *guardFS) readMarks(readOnly bool) error {
	names, err := g.FS.List(g.dir)
	if err != nil {
		return err
	}
	g.alone = aloneCopies(names)
	for _, name := range g.marks.find(names) {
		if !readOnly {
			_ = g.FS.Remove(g.FS.PathJoin(g.dir, name)) // garbage
		}
	}
	m := &g.marks
	if m.path != "" {
		m.path = g.FS.PathJoin(g.dir, m.path)
		return nil
	}
	m.logs = logsIn(names)
	if len(m.logs) > 0 && !readOnly {
		m.iter = 1
		m.path, err = writeLogMark(g.FS, g.dir, m.iter, m.logs)
		return err
	}
	return logsUnknown(names, g.dir)
}

// logsUnknown is an error if both logs and the mark of them are gone from dir.
func logsUnknown(names []string, dir string) error {
	isMark := func(name string) bool { _, _, ok := parseLogMark(name); return ok }
	if len(logsIn(names)) > 0 || slices.ContainsFunc(names, isMark) || !hasCopy(names) {
		return nil
	}
	return fmt.Errorf("%w: %s has neither a log nor a file %s that names them", kv.ErrCorrupt, dir, strings.TrimSuffix(markPrefix, "."))
}

// isMissing reports whether a file is a log that is named and was not there when
// the index was opened.
func (m *logMarks) isMissing(name string) bool {
	_, ok := m.missing[name]
	return ok
}

// create notes a new log.
func (m *logMarks) create(name string) {
	if n := logFileNumber(name); n > 0 {
		m.mu.Lock()
		m.made = append(m.made, n)
		m.mu.Unlock()
	}
}

// remove forgets a log that is about to go. The mark need not know.
func (m *logMarks) remove(name string) {
	if n := logFileNumber(name); n > 0 {
		m.mu.Lock()
		m.logs = slices.DeleteFunc(m.logs, func(l markedLog) bool { return l.number == n })
		m.mu.Unlock()
	}
}

// syncing is called before the directory is synced, the result after it. Several
// may be under way.
func (m *logMarks) syncing() (synced func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made := slices.Clone(m.made)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, number := range made {
			if i := slices.Index(m.made, number); i >= 0 {
				m.made = slices.Delete(m.made, i, i+1)
				m.logs = append(m.logs, markedLog{number: number})
			}
		}
		slices.SortFunc(m.logs, compareLogs)
	}
}

// setSize notes that a log was synced and closed with so many bytes.
func (m *logMarks) setSize(name string, size uint64) {
	n := logFileNumber(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.logs {
		if m.logs[i].number == n {
			m.logs[i].size = size
		}
	}
}

// moveMark names the logs that are in the directory now. It is called before
// anything is written to the newest one.
func (g *guardFS) moveMark() {
	m := &g.marks
	m.moving.Lock()
	defer m.moving.Unlock()
	if g.isFailed() {
		return
	}
	m.mu.Lock()
	logs, old := slices.Clone(m.logs), m.path
	m.iter++
	iter := m.iter
	m.mu.Unlock()
	path, err := writeLogMark(g.FS, g.dir, iter, logs)
	if err != nil {
		g.fail("create", path, err)
		return
	}
	m.mu.Lock()
	m.path, m.moved = path, true
	m.mu.Unlock()
	if old != "" {
		_ = g.FS.Remove(old) // the newest counts
	}
}

// endMark says how long the last log is, when Pebble has closed it.
func (g *guardFS) endMark() {
	g.marks.mu.Lock()
	moved := g.marks.moved
	g.marks.mu.Unlock()
	if moved {
		g.moveMark()
	}
}

// missingLog is the error for a log that is not there.
func missingLog(path string) error {
	return &lostLog{logFileNumber(filepath.Base(path)), fmt.Errorf("%w: %s is missing, and held commits", kv.ErrCorrupt, path)}
}

// lostLog is the error for a log that is needed, and is gone or damaged. Pebble reads
// them in order, and none that it does not need: those before it are whole.
type lostLog struct {
	number uint64
	err    error
}

func (l *lostLog) Error() string { return l.err.Error() }
func (l *lostLog) Unwrap() error { return l.err }
