//go:build cgo

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
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/zarrdb/zarrdb/serve/local"
)

func main() {}

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
// has ended, or zdb_cancel has returned. The result is nil where there is nothing to say.
//
//export zdb_call
func zdb_call(op C.int, handle C.int64_t, ints *C.int64_t, n C.int64_t, text *C.char, length C.int64_t, body unsafe.Pointer, size C.int64_t, id C.int64_t) *C.zdb_result {
	r := &request{
		op: int(op), handle: int64(handle),
		ints: slices.Clone(unsafe.Slice((*int64)(unsafe.Pointer(ints)), int(n))),
		text: C.GoStringN(text, C.int(length)),
		body: unsafe.Slice((*byte)(body), int(size)),
	}
	if id == 0 {
		return result(r.run(context.Background()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	j := &job{cancel: cancel, done: make(chan struct{})}
	mu.Lock()
	jobs[int64(id)] = j
	mu.Unlock()
	go func() {
		j.out, j.err = r.run(ctx)
		close(j.done)
	}()
	return zdb_wait(id)
}

// zdb_try is zdb_call for a read that is short: it is given up after a slice. Then the result is that it runs,
// and the caller begins it anew with zdb_call.
//
//export zdb_try
func zdb_try(op C.int, handle C.int64_t, ints *C.int64_t, n C.int64_t, body unsafe.Pointer, size C.int64_t) *C.zdb_result {
	r := &request{
		op: int(op), handle: int64(handle),
		ints: unsafe.Slice((*int64)(unsafe.Pointer(ints)), int(n)),
		body: unsafe.Slice((*byte)(body), int(size)),
	}
	ctx, cancel := context.WithTimeout(context.Background(), slice)
	defer cancel()
	out, err := r.run(ctx)
	if err != nil && ctx.Err() != nil {
		return pack(statusRunning, nil)
	}
	return result(out, err)
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

// zdb_cancel ends a job, and returns when it has ended: nothing uses its memory any more.
//
//export zdb_cancel
func zdb_cancel(id C.int64_t) {
	mu.Lock()
	j := jobs[int64(id)]
	mu.Unlock()
	if j != nil {
		j.cancel()
		<-j.done
		forget(int64(id), j)
	}
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
		text, failed := json.Marshal(local.Failure(err))
		if failed != nil {
			text, _ = json.Marshal(err.Error())
		}
		return pack(statusFailed, text)
	}
	if len(out) == 0 {
		return nil
	}
	return pack(statusDone, out)
}

func pack(status int64, out []byte) *C.zdb_result {
	r := (*C.zdb_result)(C.malloc(C.size_t(16 + len(out))))
	r.status, r.length = C.int64_t(status), C.int64_t(len(out))
	if len(out) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), 16)), len(out)), out)
	}
	return r
}

// run carries an operation out. A panic is its error: the interpreter has other work.
func (r *request) run(ctx context.Context) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("zarrdb: panic: %v\n%s", p, debug.Stack())
		}
	}()
	if r.op < 0 || r.op >= len(operations) {
		return nil, fmt.Errorf("zarrdb: no operation %d", r.op)
	}
	return operations[r.op](ctx, r)
}

// sockets are the connections of this process, in memory that a child after fork can read: for each its descriptor,
// and its inode, which tells that it is still open, or 0.
var sockets = unsafe.Slice((*[2]int64)(C.calloc(maxSockets, 16)), maxSockets)

const maxSockets = 256

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
