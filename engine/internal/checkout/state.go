package checkout

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/dirkv"
)

// State is what a folder knows of its database.
type State struct {
	Format   int    // 1
	ID       string // random; part of the name that keeps the version
	Database string // the path, absolute
	Near     string // the same, relative to the folder: both may have moved
	Identity string // of the database
	Branch   string // that commits go to; "" if another revision was checked out
	Commit   string
	Path     string   `json:",omitempty"` // of the node that is the root of the folder
	Only     []string `json:",omitempty"` // paths below it, if not all is there
	// Index is the name of the index, "" before there is one.
	Index string
	// Moving says that the files are being changed to those of Commit; the index is the one from before.
	Moving bool `json:",omitempty"`
	// Pending is a commit whose outcome was not noted yet.
	Pending *Pending `json:",omitempty"`
}

// Pending is a commit that was begun.
type Pending struct{ Session, Branch, Index string }

// Prefix begins the keys of the folder in the database.
func (s *State) Prefix() string {
	if s.Path == "" {
		return ""
	}
	return s.Path + "/"
}

// ErrNone means that a directory is no folder of a database.
var ErrNone = errors.New("it was not made by \"zarrdb checkout\"")

// Beside is the directory with the state and the store of the files of a folder.
type Beside struct {
	Dir  string // of the files; links in its path are resolved
	Side string
	meta *dirkv.Store
}

// SideOf is the path of what lies beside a folder.
func SideOf(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".zarrdb")
}

// Real returns the absolute path of a directory, without symbolic links; the directory itself may be missing.
func Real(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	return filepath.Join(above, filepath.Base(dir)), err
}

// Open opens what lies beside a folder; with create it is made if it is missing. The error is ErrNone if it is missing.
func Open(dir string, create bool) (*Beside, error) {
	dir, err := Real(dir)
	if err != nil {
		return nil, err
	}
	b := &Beside{Dir: dir, Side: SideOf(dir)}
	if create {
		b.meta, err = dirkv.Create(b.Side, nil)
	} else if b.meta, err = dirkv.Open(b.Side, nil); errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w: %s is not there, which lies beside a folder and is moved with it%s", dir, ErrNone, filepath.Base(b.Side), movedHint(dir))
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// movedHint names what lies beside a folder that is not there any more.
func movedHint(dir string) string {
	above := filepath.Dir(dir)
	sides, _ := filepath.Glob(filepath.Join(above, ".*.zarrdb")) // the pattern is fine
	for _, side := range sides {
		name := strings.TrimSuffix(filepath.Base(side)[1:], ".zarrdb")
		if _, err := os.Lstat(filepath.Join(above, name)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("; if the folder was named %s, move %s to %s", name, filepath.Base(side), filepath.Base(SideOf(dir)))
		}
	}
	return ""
}

// Close lets go of the directory.
func (b *Beside) Close() error { return b.meta.Close() }

// Lock keeps other processes from the folder, until unlock.
func (b *Beside) Lock(ctx context.Context) (unlock func(), err error) { return b.meta.Lock(ctx) }

// Load reads the state; nil if there is none yet.
func (b *Beside) Load(ctx context.Context) (*State, error) {
	text, err := kv.Get(ctx, b.meta, "state")
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	s := &State{}
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err == nil && s.Format != 1 {
		err = fmt.Errorf("format %d is of a newer program", s.Format)
	}
	if err != nil {
		return nil, fmt.Errorf("%s/state: %w", b.Side, err)
	}
	return s, nil
}

// Save replaces the state, durably, and then removes indexes that it does not name.
func (b *Beside) Save(ctx context.Context, s *State) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = b.meta.Set(ctx, "state", append(text, '\n'))
	}
	if err != nil {
		return err
	}
	old, _ := filepath.Glob(filepath.Join(b.Side, "index-*")) // the pattern is fine
	for _, path := range old {
		if name := filepath.Base(path); name != s.Index && (s.Pending == nil || name != s.Pending.Index) {
			_ = os.Remove(path) // the next Save tries again
		}
	}
	return nil
}

// Entry is how a file was when folder and version agreed.
type Entry struct {
	Key string
	Ref kv.ID // identifies the value in the version
	// Sum is that of the file. It differs from Ref for values that the database links, and documents without copies.
	Sum  digest.Sum
	Mark Mark
}

// Mark tells a file from its other versions without reading it. The zero Mark is that of no file.
type Mark struct {
	Changed int64  // in any way, in nanoseconds since 1970: unlike the time that tools show, no program sets it back
	Tag     string // inode, time of the bytes and size
}

// NewIndex writes an index and syncs it. It returns the name, for the state.
func (b *Beside) NewIndex(fill func(add func(Entry) error) error) (name string, err error) {
	// Others may use the folder, too, as far as the umask lets them: CreateTemp does not.
	f, err := os.OpenFile(filepath.Join(b.Side, fmt.Sprintf("index-%d", time.Now().UnixNano())), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	w, n := bufio.NewWriterSize(f, 1<<16), 0
	err = fill(func(e Entry) error {
		n++
		sum := "="
		if kv.ID(e.Sum) != e.Ref {
			sum = e.Sum.String()
		}
		_, err := fmt.Fprintf(w, "%x %s %d %s %q\n", e.Ref[:], sum, e.Mark.Changed, orDash(e.Mark.Tag), e.Key)
		return err
	})
	if err == nil {
		_, err = fmt.Fprintf(w, "end %d\n", n)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return filepath.Base(f.Name()), nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Index returns the entries of an index, sorted by key, and when it was written. "" is an empty one.
func (b *Beside) Index(name string) (entries iter.Seq2[Entry, error], at time.Time, err error) {
	if name == "" {
		return func(func(Entry, error) bool) {}, at, nil
	}
	path := filepath.Join(b.Side, filepath.Base(name))
	info, err := os.Stat(path)
	if err != nil {
		return nil, at, err
	}
	return func(yield func(Entry, error) bool) {
		err := readIndex(path, func(e Entry) bool { return yield(e, nil) })
		if err != nil {
			yield(Entry{}, fmt.Errorf("%s: %w; \"zarrdb checkout DB@REV DIR --keep /\" makes it again after %s is removed", path, err, b.Side))
		}
	}, info.ModTime(), nil
}

func readIndex(path string, fn func(Entry) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for n := 0; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the index ends after %d entries: %w", n, err)
		}
		if line == fmt.Sprintf("end %d\n", n) {
			return nil
		}
		e, ok := entryOf(strings.TrimSuffix(line, "\n"))
		if !ok {
			return fmt.Errorf("line %d of the index is damaged", n+1)
		}
		if !fn(e) {
			return nil
		}
	}
}

func entryOf(line string) (e Entry, ok bool) {
	parts := strings.SplitN(line, " ", 5)
	if len(parts) != 5 {
		return e, false
	}
	ref, err := hex.DecodeString(parts[0])
	ok = err == nil && copy(e.Ref[:], ref) == len(e.Ref) && len(ref) == len(e.Ref)
	e.Sum = digest.Sum(e.Ref)
	if parts[1] != "=" {
		sum, err := hex.DecodeString(parts[1])
		ok = ok && err == nil && copy(e.Sum[:], sum) == len(e.Sum)
	}
	if e.Mark.Changed, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return e, false
	}
	if parts[3] != "-" {
		e.Mark.Tag = parts[3]
	}
	e.Key, err = strconv.Unquote(parts[4])
	return e, ok && err == nil
}
