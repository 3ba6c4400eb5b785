// Package elements does what the Python package asks of the engine in its process. Its caller is the library of C
// in python/lib. Elements and values have operations of their own; all else is the operation call, by name and in JSON.
package elements

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Request is a call of an operation of [Read] and so on. Body is memory of the caller.
type Request struct {
	Op     int
	Handle int64
	Ints   []int64
	Text   string
	Body   []byte
}

// Read is the operation that reads elements into memory.
const Read = 4

// operations have the numbers of _engine.py. Version counts their changes.
var operations = []func(ctx context.Context, r *Request) ([]byte, error){
	open, closing: end, call, openArray, Read: read, readMany, write, readVariable, writeVariable, selectLabels,
	get: getValue, setValue, listKeys, setVirtual,
}

const (
	closing = 1  // the operation that closes a handle
	get     = 10 // the operation that reads a value
)

// Version is the number of the operations and their arguments, which _engine.py has too.
const Version = 2

// Quick reports whether a request may be tried in the thread that asks, and carried out anew if that took too long.
func (r *Request) Quick() bool {
	if r.Op != get {
		return false
	}
	v, err := of[*view](r.Handle)
	if err != nil || v.slow.Load() <= 0 {
		return err == nil
	}
	v.slow.Add(-1)
	return false
}

// Slow notes that a try took too long: the next ones are not made.
func (r *Request) Slow() {
	if v, err := of[*view](r.Handle); err == nil {
		v.slow.Store(slowTries)
	}
}

const slowTries = 100

// Dialed gets each connection that is made.
var Dialed func(net.Conn)

// Run carries an operation out. A panic is its error: the interpreter has other work.
func (r *Request) Run(ctx context.Context) (out []byte, err error) {
	defer recovered(&err)
	if r.Op < 0 || r.Op >= len(operations) {
		return nil, fmt.Errorf("zarrdb: no operation %d", r.Op)
	}
	if r.Op != closing {
		done, err := r.use()
		if err != nil {
			return nil, err
		}
		defer done()
	}
	return operations[r.Op](ctx, r)
}

// recovered turns a panic into an error. It is deferred.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("zarrdb: panic: %v\n%s", p, debug.Stack())
	}
}

// handles are what the interpreter has open, by number.
var handles = struct {
	sync.RWMutex
	open map[int64]any
}{open: map[int64]any{}}

// add opens the handle that the caller has chosen: so the caller can close it also if it never saw the answer.
func (r *Request) add(v any) {
	handles.Lock()
	defer handles.Unlock()
	handles.open[r.Ints[0]] = v
}

// of returns what a handle stands for.
func of[T any](handle int64) (v T, err error) {
	handles.RLock()
	defer handles.RUnlock()
	v, ok := handles.open[handle].(T)
	if !ok {
		return v, kv.ErrClosed
	}
	return v, nil
}

// open opens the database in the directory that the text names. The program zarrdb, the name of this process and the environment of
// the interpreter follow. The second integer is how many milliseconds to wait for a process that does not answer, 0 for the default,
// -1 also for none that does not serve the database.
func open(ctx context.Context, r *Request) ([]byte, error) {
	parts := strings.SplitN(r.Text, "\x00", 4)
	if len(parts) != 4 {
		return nil, fmt.Errorf("%w: open with %d texts", txn.ErrRequest, len(parts))
	}
	if err := setEnviron(parts[3]); err != nil {
		return nil, err
	}
	cache, err := cacheBytes()
	if err != nil {
		return nil, err
	}
	a, err := local.Attach(ctx, parts[0], local.AttachOptions{
		Server: parts[1], Program: parts[2], Wait: time.Duration(r.Ints[1]) * time.Millisecond, CacheBytes: cache, Dialed: Dialed,
	})
	if err != nil {
		return nil, err
	}
	r.add(&database{Attached: a})
	id := a.Identity()
	return json.Marshal([]string{id.Name, id.File})
}

// cacheBytes is what $ZARRDB_CACHE_BYTES says about decoded chunks: 0 keeps none, and without it they take a part of the memory.
func cacheBytes() (int64, error) {
	text := os.Getenv("ZARRDB_CACHE_BYTES")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: ZARRDB_CACHE_BYTES is %q: say how many bytes of decoded chunks are kept, such as 268435456, or 0", local.ErrRequest, text)
	}
	if n == 0 {
		return -1, nil
	}
	return n, nil
}

// setEnviron takes over the environment of the interpreter, such as credentials. Go has its own copy, of when the process began.
func setEnviron(environ string) error {
	gone := map[string]bool{}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		gone[name] = true
	}
	for kv := range strings.SplitSeq(environ, "\x00") {
		name, value, ok := strings.Cut(kv, "=")
		delete(gone, name)
		if old, set := os.LookupEnv(name); !ok || set && old == value {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for name := range gone {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return nil
}

// database is a database that is open. A call either takes place before it is closed, or has not begun: so the caller
// may open it again, and repeat the call, whatever that does.
type database struct {
	*local.Attached
	calls sync.RWMutex // held by calls, and for ever when it is closed
}

func (d *database) close() error {
	d.calls.Lock()
	return d.DB.Close()
}

// use keeps the database of a handle open until the function that it returns is called.
func (r *Request) use() (done func(), err error) {
	handles.RLock()
	v := handles.open[r.Handle]
	handles.RUnlock()
	var d *database
	switch v := v.(type) {
	case *database:
		d = v
	case *view:
		d = v.db
	case *array:
		d = v.v.db
	default:
		return func() {}, nil // the operation returns the error
	}
	if !d.calls.TryRLock() {
		return nil, kv.ErrClosed
	}
	return d.calls.RUnlock, nil
}

// closeTime bounds how long the end of a handle, and that of the process that serves the database, are waited for. Calls of
// other threads may take longer.
var closeTime = 10 * time.Second // tests change it

// end closes what a handle stands for, if it is open. A database is closed after the calls that are under way: if they last, when this
// call has ended. Nothing is waited for if the integer is 0.
func end(ctx context.Context, r *Request) ([]byte, error) {
	handles.Lock()
	v := handles.open[r.Handle]
	delete(handles.open, r.Handle)
	handles.Unlock()
	c, ok := v.(interface{ close() error })
	if !ok {
		return nil, nil
	}
	closed := make(chan error, 1)
	go func() {
		var err error
		defer func() { closed <- err }()
		defer recovered(&err)
		err = c.close()
	}()
	if len(r.Ints) == 0 || r.Ints[0] == 0 {
		return nil, nil
	}
	t := time.NewTimer(closeTime)
	defer t.Stop()
	select {
	case err := <-closed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.C:
		return nil, nil
	}
}

// view is a version or a session; the other one is nil.
type view struct {
	db       *database
	snapshot *engine.Snapshot
	session  *engine.Session
	slow     atomic.Int32 // so many reads are not tried before they are begun
}

// reader is the view as keys and bytes.
func (v *view) reader() kv.Reader {
	if v.snapshot != nil {
		return v.snapshot
	}
	return v.session
}

func (v *view) close() error {
	if v.snapshot != nil {
		return v.snapshot.Close()
	}
	return v.session.Close()
}

// array opens an array as it is now.
func (v *view) array(ctx context.Context, path string) (*zarr.Array, error) {
	if v.snapshot != nil {
		return v.snapshot.Array(ctx, path)
	}
	return v.session.Array(ctx, path)
}

// array is an array of a view. In a session, it is the path of one, as which it is opened for each call.
type array struct {
	v    *view
	path string
	a    *zarr.Array
	typ  string
}

// info describes an array.
type info struct {
	Format     int             `json:"format"`
	Shape      []int64         `json:"shape"`
	Chunks     []int           `json:"chunks,omitempty"` // nil if their shapes differ
	Unit       []int           `json:"unit,omitempty"`   // the part of a chunk that is decoded at once
	Type       string          `json:"type"`             // the name in Zarr v3, else "json" or "ragged<int32>"
	NumPy      string          `json:"numpy,omitempty"`  // as Python writes it: "'<i4'"; of the parts of a ragged one
	ItemSize   int             `json:"item_size"`        // 0 for a variable length
	Dimensions []string        `json:"dimensions,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// openArray opens and describes the array at the path that the text names.
func openArray(ctx context.Context, r *Request) ([]byte, error) {
	v, err := of[*view](r.Handle)
	if err != nil {
		return nil, err
	}
	a, err := v.array(ctx, r.Text)
	if err != nil {
		return nil, err
	}
	m := a.Meta()
	out := info{
		Format: int(m.Version), Shape: m.Shape, Type: m.Type.Name(), Dimensions: a.DimensionNames(),
		Chunks: m.Grid.Regular(), Unit: a.InnerChunks(),
	}
	if out.Type == "" {
		out.Type = m.Type.String()
	}
	if !m.Type.Variable() {
		out.ItemSize = m.Type.Size()
	}
	out.NumPy, _ = m.Type.NumPy()
	if m.Type.Kind() == dtype.Ragged {
		elem, _ := m.Type.Elem()
		out.NumPy, _ = elem.NumPy()
	}
	if out.Attributes, err = m.Attributes.MarshalJSON(); err != nil { // a bare NaN becomes a string
		return nil, err
	}
	r.add(&array{v: v, path: r.Text, a: a, typ: m.Type.String()})
	return json.Marshal(out)
}

// on runs fn with the array of a request, as it is now.
func (r *Request) on(ctx context.Context, fn func(h *array, a *zarr.Array) error) error {
	h, err := of[*array](r.Handle)
	if err != nil {
		return err
	}
	if h.v.snapshot != nil {
		return fn(h, h.a)
	}
	a, err := h.v.session.Array(ctx, h.path)
	if err != nil {
		return err
	}
	if now := a.Type().String(); now != h.typ {
		return fmt.Errorf("%w: /%s has another type by now, %s; open it again", zarr.ErrSelection, h.path, now)
	}
	return fn(h, a)
}

var errShort = errors.New("zarrdb: the selection is too short")

// selection takes a selection from the integers: the number of dimensions, then for each one the first element,
// how many there are, or -1 for one without a dimension in the result, and the step. Or the negative number of
// dimensions, then the place of one element.
func (r *Request) selection(h *array, a *zarr.Array) (sel zarr.Selection, shape []int64, err error) {
	if len(r.Ints) == 0 {
		return sel, nil, errShort
	}
	n, each := int(r.Ints[0]), 3
	if n < 0 {
		n, each = -n, 1
	}
	if len(r.Ints) < 1+each*n {
		return sel, nil, errShort
	}
	index := make([]zarr.Index, n)
	for i := range n {
		at := r.Ints[1+each*i]
		if each == 1 || r.Ints[2+3*i] < 0 {
			index[i] = zarr.At(at)
			continue
		}
		count, step := r.Ints[2+3*i], r.Ints[3+3*i]
		shape = append(shape, count)
		stop := at + count*step
		if count == 0 {
			at, stop, step = 0, 0, 1
		} else if stop < 0 {
			stop = zarr.None
		}
		index[i] = zarr.Slice(at, stop, step)
	}
	r.Ints = r.Ints[1+each*n:]
	sel = zarr.Sel(index...)
	if h.v.snapshot != nil {
		return sel, shape, nil
	}
	got, err := a.Resolve(sel)
	if err == nil && !slices.Equal(got, shape) {
		err = fmt.Errorf("%w: /%s has another shape by now: the selection is %v, not %v; refresh or open it again", zarr.ErrSelection, h.path, got, shape)
	}
	return sel, shape, err
}

// read reads the elements of a selection into memory. The integers that follow the selection are the offset of
// the first element and a stride for each dimension of the result, or nothing for C order.
func read(ctx context.Context, r *Request) ([]byte, error) {
	return nil, r.on(ctx, func(h *array, a *zarr.Array) error {
		sel, _, err := r.selection(h, a)
		if err != nil {
			return err
		}
		if len(r.Ints) == 0 {
			return a.ReadBytes(ctx, sel, r.Body)
		}
		return a.ReadInto(ctx, sel, r.memory())
	})
}

// memory is the memory with the layout that the integers have.
func (r *Request) memory() codecs.Dst {
	m := codecs.Dst{Data: r.Body, Offset: int(r.Ints[0])}
	for _, s := range r.Ints[1:] {
		m.Strides = append(m.Strides, int(s))
	}
	return m
}

// readMany reads the elements of several selections, one selection after the other.
func readMany(ctx context.Context, r *Request) ([]byte, error) {
	return nil, r.on(ctx, func(h *array, a *zarr.Array) error {
		type part struct {
			sel zarr.Selection
			to  []byte
		}
		var parts []part
		left := r.Body
		for len(r.Ints) > 0 {
			sel, shape, err := r.selection(h, a)
			if err != nil {
				return err
			}
			n := a.Type().Size()
			for _, k := range shape {
				n *= int(k)
			}
			if n > len(left) {
				return fmt.Errorf("%w: the memory is too short", zarr.ErrSelection)
			}
			parts, left = append(parts, part{sel, left[:n]}), left[n:]
		}
		return gather.Each(ctx, runtime.GOMAXPROCS(0), len(parts), func(ctx context.Context, i int) error {
			return a.ReadBytes(ctx, parts[i].sel, parts[i].to)
		})
	})
}

// tries bounds how often a write is repeated because another process has written to the same chunk.
const tries = 1000

// writing runs fn, which writes to a part of an array. Writes to parts of a chunk by several processes are all
// kept. A write of a whole chunk takes place whatever value of the chunk this process has read before.
func (r *Request) writing(ctx context.Context, fn func(a *zarr.Array, sel zarr.Selection, shape []int64) error) error {
	ints := r.Ints
	for n := 0; ; n++ {
		var v *view
		r.Ints = ints
		err := r.on(ctx, func(h *array, a *zarr.Array) error {
			if v = h.v; v.snapshot != nil {
				return fmt.Errorf("%w: a version cannot be written", engine.ErrReadOnly)
			}
			sel, shape, err := r.selection(h, a)
			if err != nil {
				return err
			}
			return fn(a, sel, shape)
		})
		var changed *engine.ChangedError
		if !errors.As(err, &changed) || n >= tries {
			return err
		}
		if _, err := kv.Locate(ctx, v.session, changed.Key); err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
	}
}

// write writes the elements in memory, with a layout as of read, to a selection.
func write(ctx context.Context, r *Request) ([]byte, error) {
	return nil, r.writing(ctx, func(a *zarr.Array, sel zarr.Selection, _ []int64) error {
		return a.WriteFrom(ctx, sel, r.memory())
	})
}

// maxVariable bounds the elements that are read at a time, of which there are several copies.
const maxVariable = 64 << 20

// readVariable returns elements of variable length: 4 bytes for the place of each, and for the end, then the bytes.
func readVariable(ctx context.Context, r *Request) ([]byte, error) {
	var out []byte
	err := r.on(ctx, func(h *array, a *zarr.Array) error {
		sel, _, err := r.selection(h, a)
		if err != nil {
			return err
		}
		got, err := a.ReadVarAtMost(ctx, sel, maxVariable)
		if err != nil {
			return err
		}
		head := 4 * (got.Len() + 1)
		out = make([]byte, head)
		for i := range got.Len() {
			out = append(out, got.At(i)...)
			binary.LittleEndian.PutUint32(out[4*(i+1):], uint32(len(out)-head))
		}
		return nil
	})
	return out, err
}

// writeVariable writes elements in that form.
func writeVariable(ctx context.Context, r *Request) ([]byte, error) {
	return nil, r.writing(ctx, func(a *zarr.Array, sel zarr.Selection, shape []int64) error {
		n := 1
		for _, k := range shape {
			n *= int(k)
		}
		src, err := dtype.OpenVariable(r.Body, n)
		if err != nil {
			return fmt.Errorf("%w: %w", txn.ErrRequest, err)
		}
		return a.WriteVar(ctx, sel, src)
	})
}

// selectLabels turns a selection by labels of coordinates, which the text has, into one by numbers. With an integer other than 0,
// a label stands for the nearest one.
func selectLabels(ctx context.Context, r *Request) ([]byte, error) {
	var out []byte
	err := r.on(ctx, func(h *array, a *zarr.Array) error {
		beside := func(ctx context.Context, name string) (*zarr.Node, error) {
			if a.Path() == "" || name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("%s: beside /%s: %w", name, a.Path(), zarr.ErrNotFound)
			}
			path := a.Path()[:strings.LastIndexByte(a.Path(), '/')+1] + name
			if h.v.snapshot != nil {
				return h.v.snapshot.Node(ctx, path)
			}
			return h.v.session.Node(ctx, path)
		}
		parse := cf.ParseSelection
		if len(r.Ints) > 0 && r.Ints[0] != 0 {
			parse = cf.NearestSelection
		}
		sel, _, err := parse(ctx, r.Text, a, beside)
		if err == nil {
			out, err = json.Marshal(sel.String())
		}
		return err
	})
	return out, err
}

// setVirtual stores the references that the text lists in a session.
func setVirtual(ctx context.Context, r *Request) ([]byte, error) {
	v, err := of[*view](r.Handle)
	if err != nil {
		return nil, err
	}
	if v.session == nil {
		return nil, fmt.Errorf("%w: a version takes no references", txn.ErrRequest)
	}
	var refs []struct {
		Key, URL, ETag string
		Offset, Length uint64
		Modified       float64 // seconds since 1970
		Anywhere       bool    // also where references are not followed
	}
	if err := json.Unmarshal([]byte(r.Text), &refs); err != nil {
		return nil, fmt.Errorf("%w: %w", txn.ErrRequest, err)
	}
	granted, err := v.db.DB.Granted()
	if err != nil {
		return nil, err
	}
	rules := granted.Rules()
	for _, ref := range refs {
		src := tree.Source{URL: ref.URL}
		if strings.HasPrefix(src.URL, "/") {
			src.URL = "file://" + src.URL
		}
		if ref.ETag != "" {
			src.Validator = kv.IfMatch(ref.ETag)
		} else if ref.Modified != 0 {
			src.Validator = kv.IfUnmodifiedSince(time.Unix(int64(ref.Modified), 0))
		}
		if !strings.Contains(src.URL, "://") {
			return nil, fmt.Errorf("%w: %s: the location is neither a URL nor an absolute path", txn.ErrRequest, ref.URL)
		}
		if _, err := rules.Resolve(src.URL); err != nil && !ref.Anywhere {
			return nil, fmt.Errorf("set a virtual reference at %s: %w", ref.Key, err)
		}
		if err := v.session.SetVirtual(ctx, ref.Key, src, ref.Offset, ref.Length); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
