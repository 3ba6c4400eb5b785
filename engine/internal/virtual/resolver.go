package virtual

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
)

// Resolver reads the virtual values of a database or reference set. It is a
// [txn.Resolver]. Safe for concurrent use; what its [Storage] opened is closed by
// the caller.
type Resolver struct {
	storage Storage
	folder  kv.Reader      // the folder [Inside], or nil
	memory  *gather.Memory // bounds held bytes of files of servers
	allowed func() (refs.Rules, error)

	// Gap is the number of unwanted bytes between two parts of a file on a server up
	// to which they are read in one request; at least the server's own. It is set
	// before use.
	Gap int64

	mu    sync.Mutex
	rules *refs.Rules          // nil before allowed has succeeded
	known map[string]*referent // by URL
}

// Inside stands for the folder of a set that no URL names, such as a member
// of an archive. No root scheme is spelled like this.
const Inside = "zarrdb-set://folder/"

// Storage opens what references lead to.
type Storage struct {
	// Open locates the file at a path below a root, as rules resolved it. It may
	// read rng of it, see [kv.LocateRange].
	Open func(ctx context.Context, root, path string, rng kv.Range, limit int64) (kv.Value, []byte, error)
	// Below returns the store of everything below a root.
	Below func(ctx context.Context, root string) (kv.Reader, error)
}

var _ txn.Resolver = (*Resolver)(nil)

// New returns a resolver. folder, if not nil, has the files in the folder [Inside]. allowed
// returns the rules for references, and is called again after each error until a call succeeds.
func New(files Storage, folder kv.Reader, allowed func() (refs.Rules, error)) *Resolver {
	return &Resolver{storage: files, folder: folder, allowed: allowed, memory: gather.NewMemory(remoteMemory)}
}

// maxReferents bounds the files that stay resolved.
const maxReferents = 1 << 14

// referent is where a URL leads.
type referent struct {
	// place is mapped if the bytes are not where the URL says: the versions of
	// the two places have nothing to do with each other, only their sizes.
	place refs.Place
	// asking is held while a goroutine asks for the file; other goroutines wait for the answer.
	asking ctxlock.Lock

	mu   sync.Mutex
	file kv.Value // located; nil for files of this machine, which are asked each time
}

// Anew returns a resolver like r that has asked for no file yet.
func (r *Resolver) Anew() *Resolver {
	return &Resolver{storage: r.storage, folder: r.folder, memory: r.memory, allowed: r.allowed, Gap: r.Gap}
}

func (p *referent) local() bool { return strings.HasPrefix(p.place.Root, "file://") }

// follows returns the rules, and the referent of a URL if it is known.
func (r *Resolver) follows(url string) (*refs.Rules, *referent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rules == nil {
		rules, err := r.allowed()
		if err != nil {
			return nil, nil, err
		}
		r.rules = &rules
	}
	return r.rules, r.known[url], nil
}

// referent applies the rules to a URL.
func (r *Resolver) referent(url string) (*referent, error) {
	rules, p, err := r.follows(url)
	if err != nil || p != nil {
		return p, err
	}
	place, err := rules.Resolve(url)
	if errors.Is(err, refs.ErrForbidden) { // it may have been allowed meanwhile
		var now refs.Rules
		if now, err = r.allowed(); err == nil {
			place, err = now.Resolve(url)
			r.mu.Lock()
			r.rules = &now
			r.mu.Unlock()
		}
	}
	if err != nil {
		return nil, err
	}
	p = &referent{place: place}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.known[url]; old != nil {
		return old, nil
	}
	if r.known == nil {
		r.known = map[string]*referent{}
	}
	if len(r.known) >= maxReferents {
		for other := range r.known { // any one
			delete(r.known, other)
			break
		}
	}
	r.known[url] = p
	return p, nil
}

// PlaceOf returns where a URL leads. Errors: [refs.ErrForbidden].
func (r *Resolver) PlaceOf(url string) (refs.Place, error) {
	p, err := r.referent(url)
	if err != nil {
		return refs.Place{}, err
	}
	return p.place, nil
}

// OpenAt locates the file at a place.
func (r *Resolver) OpenAt(ctx context.Context, at refs.Place) (kv.Value, error) {
	v, _, err := r.open(ctx, &referent{place: at}, kv.Span(0, 0), 0)
	return v, err
}

// locate finds the file of a URL. Of a server, it is asked once and again after
// stale; each read says by itself if the file is another one.
func (r *Resolver) locate(ctx context.Context, p *referent, stale kv.Value) (kv.Value, error) {
	if p.local() {
		v, _, err := r.open(ctx, p, kv.Span(0, 0), 0)
		return v, err
	}
	if file := p.found(stale); file != nil {
		return file, nil
	}
	if err := p.asking.Lock(ctx); err != nil {
		return nil, err
	}
	defer p.asking.Unlock()
	if file := p.found(stale); file != nil {
		return file, nil
	}
	v, _, err := r.open(ctx, p, kv.Span(0, 0), 0)
	if err == nil {
		p.mu.Lock()
		p.file = v
		p.mu.Unlock()
	}
	return v, err
}

// found is the file as it was located last, nil if that is stale.
func (p *referent) found(stale kv.Value) kv.Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == stale {
		return nil
	}
	return p.file
}

// forget has the file of p looked for anew, if the known file is still file.
func (r *Resolver) forget(p *referent, file kv.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == file {
		p.file = nil
	}
}

// open asks for a file, and for a part of it in the same request if that is
// possible. See [kv.LocateRange].
func (r *Resolver) open(ctx context.Context, p *referent, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	if p.place.Root == Inside && r.folder != nil {
		return kv.LocateRange(ctx, r.folder, p.place.Path, rng, limit)
	}
	return r.storage.Open(ctx, p.place.Root, p.place.Path, rng, limit)
}

// spacing says how the parts of a file are best read.
func (r *Resolver) spacing(ctx context.Context, p *referent) (gap, most int64) {
	view := r.folder
	if p.place.Root != Inside || view == nil {
		var err error
		if view, err = r.storage.Below(ctx, p.place.Root); err != nil {
			return 0, 0 // comes again when the file is opened
		}
	}
	gap, most = kv.Spacing(view)
	if _, ok := view.(kv.Spacer); ok { // a file of this machine takes no request
		gap = max(gap, r.Gap)
	}
	return gap, most
}

// Locate implements [txn.Resolver].
func (r *Resolver) Locate(ctx context.Context, src tree.Source, offset, length uint64) (kv.Value, error) {
	v, err := r.find(ctx, src, offset, length, nil)
	if err != nil {
		return nil, virtualError(src, err)
	}
	return v, nil
}

func virtualError(src tree.Source, err error) error {
	var missing *refs.MissingError
	if errors.Is(err, refs.ErrForbidden) || errors.As(err, &missing) && !missing.Place.Mapped {
		return fmt.Errorf("virtual value: %w", err) // has the URL
	}
	return fmt.Errorf("virtual value in %s: %w", redact.URL(src.URL), err)
}

func (r *Resolver) find(ctx context.Context, src tree.Source, offset, length uint64, stale kv.Value) (*value, error) {
	p, err := r.referent(src.URL)
	if err != nil {
		return nil, err
	}
	file, err := r.locate(ctx, p, stale)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, &refs.MissingError{Place: p.place} // hidden: the key is not
	}
	if err != nil {
		return nil, err
	}
	return r.part(src, offset, length, p, file)
}

// part is a part of a file that was found.
func (r *Resolver) part(src tree.Source, offset, length uint64, p *referent, file kv.Value) (*value, error) {
	seen := ValidatorOf(file)
	if err := checkVersion(src.Validator, file, p.place.Mapped); err != nil {
		r.forget(p, file) // another version may come
		return nil, err
	}
	size := uint64(max(file.Size(), 0))
	if src.Whole {
		length = size - min(offset, size)
	}
	if offset > size || length > size-offset {
		return nil, fmt.Errorf("%w: %d bytes from %d on, of a file of %d", refs.ErrUnreachable, length, offset, size)
	}
	v := &value{r: r, p: p, src: src, file: file, off: int64(offset), n: int64(length)}
	if seen != "" {
		v.id = partID(p.place.URL(), seen, offset, length)
	}
	return v, nil
}

// partID identifies a part of a version of a file.
func partID(url, validator string, offset, length uint64) kv.ID {
	b := append(make([]byte, 0, 256), "virtual"...)
	b = binary.AppendUvarint(b, uint64(len(url)))
	b = append(b, url...)
	b = binary.AppendUvarint(b, uint64(len(validator)))
	b = append(b, validator...)
	b = binary.AppendUvarint(b, offset)
	b = binary.AppendUvarint(b, length)
	return kv.ID(digest.Of(b))
}

// ValidatorOf returns what tells the version of a file, "" if nothing does.
func ValidatorOf(v kv.Value) string {
	if x, ok := v.(kv.Validator); ok {
		return x.Validator()
	}
	return ""
}

// checkVersion compares the recorded version of a file with its present version.
// was is a text of [kv.Validator] from the import, a condition, or empty.
func checkVersion(was string, file kv.Value, mapped bool) error {
	now := ValidatorOf(file)
	switch {
	case was == "" || was == now:
		return nil
	case isCondition(was):
		if mapped {
			return nil // tags and times are of the other place
		}
		return kv.StampOf(file).Meets(was)
	case now == "":
		return fmt.Errorf("%w: it was %q, and now nothing tells its version", kv.ErrChanged, was)
	case mapped:
		a, b := sizeIn(was), sizeIn(now)
		if a == b || a == "" || b == "" {
			return nil
		}
	}
	return fmt.Errorf("%w and since it was imported: it was %q and is %q", kv.ErrChanged, was, now)
}

func isCondition(validator string) bool {
	_, _, ok := kv.ParseCondition(validator)
	return ok
}

// ConditionOf returns the condition that comes closest to the recorded version of a file,
// for programs that do not read texts of [kv.Validator]: that the entity tag is the same, or
// that it was not changed after the second of its last change. It is "" if nothing is
// recorded.
func ConditionOf(validator string) string {
	if isCondition(validator) {
		return validator
	}
	text, _, _ := strings.Cut(validator, " size:")
	if tag, ok := strings.CutPrefix(text, "etag:"); ok {
		return kv.IfMatch(tag)
	}
	if date, ok := strings.CutPrefix(text, "modified:"); ok {
		if t, err := http.ParseTime(date); err == nil {
			return kv.IfUnmodifiedSince(t)
		}
	}
	if ns, ok := strings.CutPrefix(text, "mtime:"); ok {
		if n, err := strconv.ParseInt(ns, 10, 64); err == nil {
			return kv.IfUnmodifiedSince(time.Unix(0, n).Add(time.Second - 1)) // not before it
		}
	}
	return ""
}

// sizeIn is the size that a validator ends in, "" if it has none.
func sizeIn(validator string) string {
	i := strings.LastIndex(validator, "size:")
	if i < 0 {
		return ""
	}
	return validator[i:]
}
