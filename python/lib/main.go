// Command lib is the engine as a library for the Python package: a peer of the process that serves a
// database, which reads and writes elements in the memory of numpy. Build it with -buildmode=c-shared.
//
//	python/zarrdb/_engine.py ──zdb_call──▶ this ──▶ zarr ──▶ engine, a peer ──socket──▶ zarrdb serve
//
// See docs/design/python.md. It is the only package that needs a C compiler.
package main

/*
#include <stdint.h>
#include <stdlib.h>

typedef struct { int64_t status, length; unsigned char bytes[]; } zdb_result;
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/zarrdb/zarrdb/python/lib/elements"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/serve/wire"
)

func main() {}

func init() { elements.Dialed = note }

//export zdb_version
func zdb_version() C.int { return elements.Version }

// The states of a result, as _engine.py has them.
const (
	statusDone    = 0
	statusFailed  = 1 // the bytes are a failure of the protocol in JSON
	statusRunning = 2
)

// slice is how long a call takes at most, so that the interpreter can look for signals.
const slice = 50 * time.Millisecond

// job is a call that goes on while its caller looks for signals.
type job struct {
	cancel context.CancelFunc
	done   chan struct{}
	out    []byte
	err    error
}

var (
	mu   sync.Mutex
	jobs = map[int64]*job{}
)

// zdb_call runs an operation. With id 0 it returns when the operation has ended. With another id it returns
// after a slice at the latest, and zdb_wait waits on; the memory at body must stay in place until the operation
// has ended, or zdb_cancel is 1. The result is nil where there is nothing to say. A quick operation is first tried in the thread that asks.
//
//export zdb_call
func zdb_call(op C.int, handle C.int64_t, ints *C.int64_t, n C.int64_t, text *C.char, length C.int64_t, body unsafe.Pointer, size C.int64_t, id C.int64_t) *C.zdb_result {
	r := &elements.Request{
		Op: int(op), Handle: int64(handle),
		Ints: slices.Clone(unsafe.Slice((*int64)(unsafe.Pointer(ints)), int(n))),
		Text: C.GoStringN(text, C.int(length)),
		Body: unsafe.Slice((*byte)(body), int(size)),
	}
	if id == 0 {
		return result(r.Run(context.Background()))
	}
	late := false
	if r.Quick() {
		ctx := &deadline{at: time.Now().Add(slice)}
		out, err := r.Run(ctx)
		late = err != nil && time.Until(ctx.at) < slice/10 // also one that a part of the deadline has ended
		ctx.stop()
		if !late {
			return result(out, err)
		}
		r.Slow()
	}
	ctx, cancel := context.WithCancel(context.Background())
	j := &job{cancel: cancel, done: make(chan struct{})}
	mu.Lock()
	jobs[int64(id)] = j
	mu.Unlock()
	go func() {
		j.out, j.err = r.Run(ctx)
		close(j.done)
	}()
	if late {
		return pack(statusRunning, nil)
	}
	return zdb_wait(id)
}

// zdb_read is the operation read in the thread that asks, without an answer for errors: it is statusDone if the memory
// holds the elements, and statusRunning if they were not there within a slice. Then the caller asks with zdb_call.
//
//export zdb_read
func zdb_read(handle C.int64_t, ints *C.int64_t, n C.int64_t, body unsafe.Pointer, size C.int64_t) C.int {
	r := &elements.Request{
		Op: elements.Read, Handle: int64(handle),
		Ints: unsafe.Slice((*int64)(unsafe.Pointer(ints)), int(n)),
		Body: unsafe.Slice((*byte)(body), int(size)),
	}
	ctx := &deadline{at: time.Now().Add(slice)}
	defer ctx.stop()
	switch _, err := r.Run(ctx); {
	case err == nil:
		return statusDone
	case ctx.Err() != nil:
		return statusRunning
	}
	return statusFailed
}

// deadline is a context that ends at a time. It makes a timer only for those who wait for the end: most reads do not, and
// a timer wakes another thread.
type deadline struct {
	at time.Time

	mu     sync.Mutex
	timed  context.Context
	cancel context.CancelFunc
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(context.Background(), d.at)
	}
	return d.timed.Done()
}

func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed != nil {
		return d.timed.Err()
	}
	if time.Now().Before(d.at) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value lets contexts below this one end with it.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		return nil
	}
	return d.timed.Value(key)
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

// zdb_wait waits for a job, for a slice at most.
//
//export zdb_wait
func zdb_wait(id C.int64_t) *C.zdb_result {
	mu.Lock()
	j := jobs[int64(id)]
	mu.Unlock()
	if j == nil {
		return result(nil, errors.New("zarrdb: the call was cancelled"))
	}
	t := time.NewTimer(slice)
	defer t.Stop()
	select {
	case <-j.done:
		forget(int64(id), j)
		return result(j.out, j.err)
	case <-t.C:
		return pack(statusRunning, nil)
	}
}

// zdb_cancel has a job end. It is 1 if nothing uses the memory of the job any more; it waits for that for a slice if wait is not 0.
//
//export zdb_cancel
func zdb_cancel(id C.int64_t, wait C.int) C.int {
	mu.Lock()
	j := jobs[int64(id)]
	mu.Unlock()
	if j == nil {
		return 1
	}
	j.cancel()
	patience := slice
	if wait == 0 {
		patience = 0
	}
	select {
	case <-j.done:
	case <-time.After(patience):
		return 0
	}
	forget(int64(id), j)
	return 1
}

func forget(id int64, j *job) {
	j.cancel()
	mu.Lock()
	defer mu.Unlock()
	delete(jobs, id)
}

//export zdb_free
func zdb_free(r *C.zdb_result) { C.free(unsafe.Pointer(r)) }

// result is what a caller gets, in memory of C.
func result(out []byte, err error) *C.zdb_result {
	if err != nil {
		text, failed := json.Marshal(describe(err))
		if failed != nil {
			text, _ = json.Marshal(map[string]string{"message": err.Error()})
		}
		return pack(statusFailed, text)
	}
	if len(out) == 0 {
		return nil
	}
	return pack(statusDone, out)
}

// describe is a failure of the protocol, with what is known of a session that is lost.
func describe(err error) any {
	var lost *local.SessionLostError
	if !errors.As(err, &lost) {
		return local.Failure(err)
	}
	return struct {
		*wire.Failure
		Session    string    `json:"session"`
		Saved      time.Time `json:"saved"`
		Committing bool      `json:"committing"`
	}{local.Failure(err), lost.ID.String(), lost.Saved, lost.Committing}
}

func pack(status int64, out []byte) *C.zdb_result {
	r := (*C.zdb_result)(C.malloc(C.size_t(16 + len(out))))
	r.status, r.length = C.int64_t(status), C.int64_t(len(out))
	if len(out) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), 16)), len(out)), out)
	}
	return r
}

// sockets are the connections of this process, in memory that a child after fork can read: for each its descriptor,
// and its inode, which tells that it is still open, or 0.
var sockets = unsafe.Slice((*[2]int64)(C.calloc(maxSockets, 16)), maxSockets)

const maxSockets = 1024 // also in _engine.py

//export zdb_sockets
func zdb_sockets() unsafe.Pointer { return unsafe.Pointer(&sockets[0]) }

// note lets children after fork close a socket.
func note(conn net.Conn) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		var st syscall.Stat_t
		if syscall.Fstat(int(fd), &st) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range sockets {
			at := &sockets[i]
			var old syscall.Stat_t
			if at[1] == 0 || syscall.Fstat(int(at[0]), &old) != nil || int64(old.Ino) != at[1] {
				at[0], at[1] = int64(fd), int64(st.Ino)
				return
			}
		}
	})
}
