package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// link is one connection of a client. Requests of many goroutines are under way on
// it, told apart by their numbers.
type link struct {
	w      *wire.Conn
	hello  wire.Hello // of the server
	client *Client
	other  bool          // the server is of another user
	slots  chan struct{} // as many as requests may be under way, also such as were given up

	woken chan struct{} // it is the receiver's turn again; has room for one

	mu      sync.Mutex
	turn    turn
	failed  error // the error of a caller that received
	ending  bool  // the receiver is to go on until the connection has ended
	asleep  bool  // the receiver waits for the end of a long call, without a timer
	calls   uint64
	waiting int // requests whose callers wait
	next    uint32
	pending map[uint32]chan *wire.Frame // nil for one that was given up
	reports map[uint32]*reports         // of requests with reports
	err     error                       // why it ended
	bye     bool                        // the server ended in order: it answered all that it began
	ended   chan struct{}               // closed when it has ended and nothing is received any more
	visited bool                        // under client.visiting
	lending sync.Once

	heard   atomic.Uint64 // frames received
	silence silence       // under mu

	recalls  atomic.Uint64 // by the server
	counters uint32        // the number of the block of counters, or the next one to try; under mu
	counted  bool          // the server has that block; under mu
}

// newLink says hello.
func newLink(ctx context.Context, c net.Conn, client *Client) (*link, error) {
	l := &link{
		client: client,
		w:      wire.NewConn(c, wire.Limits{}, 0), pending: map[uint32]chan *wire.Frame{},
		woken: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	if u, ok := c.(*net.UnixConn); ok {
		uid, known, err := sockets.UserOf(u)
		l.other = err != nil || known && uid != os.Getuid() && uid != 0
	}
	waits, cancel := context.WithTimeout(ctx, cmp.Or(client.o.wait, client.o.helloTime()))
	defer cancel()
	stop := context.AfterFunc(waits, func() { _ = c.Close() })
	err := l.greet(&client.o)
	if !stop() && err == nil {
		err = waits.Err()
	}
	if err != nil {
		_ = c.Close()
		l.w.Release()
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case waits.Err() != nil:
			err = fmt.Errorf("the process that serves %v does not answer: %w", c.RemoteAddr(), os.ErrDeadlineExceeded)
			if held := client.o.holder; held != nil && held() != nil {
				err = silentError{held()}
			}
		}
		return nil, err
	}
	l.w.LimitSends(wire.Limits{Meta: l.hello.MaxMeta, Body: l.hello.MaxBody})
	l.slots = make(chan struct{}, max(l.hello.Requests, 1))
	client.share(l.hello.Processes)
	go l.receive()
	client.mu.Lock()
	lends := len(client.buckets) > 0
	client.mu.Unlock()
	if lends {
		l.lend(ctx)
	}
	return l, nil
}

func (l *link) greet(o *DialOptions) error {
	ours := wire.Hello{Protocol: wire.Protocol, Version: Version(), PID: os.Getpid(), Program: cmp.Or(o.program, filepath.Base(os.Args[0]))}
	if mmap.Supported && !o.NoFiles {
		ours.Capabilities = []string{wire.CapFiles}
	}
	if sockets.CanPair {
		ours.Capabilities = append(ours.Capabilities, wire.CapBuckets)
	}
	if o.Share {
		ours.Capabilities = append(ours.Capabilities, wire.CapShare)
	}
	meta, err := json.Marshal(&ours)
	if err != nil {
		return err
	}
	if err := l.w.Send(&wire.Frame{Op: wire.OpHello, Meta: meta}); err != nil {
		return gone(err)
	}
	f, err := l.w.Receive()
	if err != nil {
		return gone(err)
	}
	f.Close()
	switch {
	case f.Flags&wire.FlagError != 0:
		if err = remote(f.Meta); errors.Is(err, engine.ErrMoved) {
			err = gone(err) // it is ending
		}
		return err
	case f.Op == wire.OpBye:
		return gone(errors.New("it is ending"))
	case f.Op != wire.OpHello:
		return fmt.Errorf("%w: the answer to hello is %v", wire.ErrProtocol, f.Op)
	}
	if err := wire.ParseJSON(f.Op, f.Meta, &l.hello); err != nil {
		return err
	}
	if l.hello.Protocol != wire.Protocol {
		return fmt.Errorf("%w: process %d (version %s) speaks protocol %d, this one %d", ErrVersion, l.hello.PID, l.hello.Version, l.hello.Protocol, wire.Protocol)
	}
	if o.Dir == "" || l.hello.Lock == "" {
		return nil
	}
	if file := txn.FileOf(o.Dir); file != "" && file != l.hello.Lock {
		if o.foreign != nil {
			o.foreign()
		}
		return gone(fmt.Errorf("the database at %s is not the one that process %d has open", o.Dir, l.hello.PID))
	}
	return nil
}

// identity returns the identity of the server's database, zero if the server does not send it.
func (l *link) identity() txn.Identity {
	return txn.Identity{Name: l.hello.Identity, File: l.hello.Lock}
}

// goneError is an [ErrGone] with the error of the connection.
type goneError struct{ err error }

func (e *goneError) Error() string        { return fmt.Sprintf("%v: %v", ErrGone, e.err) }
func (e *goneError) Unwrap() error        { return e.err }
func (e *goneError) Is(target error) bool { return target == ErrGone }

func gone(err error) error { return &goneError{err} }

// unknownError is an [ErrUnknown] with why the connection ended.
type unknownError struct{ error }

func (e unknownError) Error() string        { return fmt.Sprintf("%v: %v", ErrUnknown, e.error) }
func (e unknownError) Unwrap() error        { return e.error }
func (e unknownError) Is(target error) bool { return target == ErrUnknown }

// receive hands replies to the calls that wait for them, until the connection ends. Callers
// take its place now and then; see turn.go.
func (l *link) receive() {
	var err error
	for err == nil {
		var gave bool
		if gave, err = l.take(true); err == nil {
			if gave {
				l.rest()
			}
			err = l.failure()
		}
	}
	_ = l.w.Close()
	l.w.Release()
	if err == io.EOF {
		err = errors.New("it was closed at the other end")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = gone(err)
	}
	l.waiting = 0
	l.silence.stop()
	for id, reply := range l.pending {
		delete(l.pending, id)
		if reply != nil {
			close(reply)
		}
	}
	close(l.ended)
	go l.client.rejoin()
}

// failure returns the error of a caller that received.
func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// take receives a frame and hands it over. It is for the goroutine whose turn it is.
// With gives, it gives the turn away if no other reply is awaited: before it hands over
// the frame, so that the next call finds it free.
func (l *link) take(gives bool) (gave bool, err error) {
	f, err := l.w.Receive()
	if err != nil {
		return false, err
	}
	l.heard.Add(1)
	if f.Op == wire.OpBye {
		l.mu.Lock()
		l.bye, l.ending = true, true
		l.mu.Unlock()
		f.Close()
		return false, nil
	}
	if f.Op == wire.OpRecall {
		f.Close()
		l.recalls.Add(1)
		go l.recalled()
		return false, nil
	}
	switch {
	case f.Flags&wire.FlagReport != 0:
		if r := l.reportsOf(f.ID); r != nil {
			r.add(f.Body)
		}
		f.Close()
		return false, nil
	case f.Op == wire.OpShare:
		var in wire.Share
		err := wire.ParseJSON(f.Op, f.Meta, &in)
		f.Close()
		l.client.share(in.Processes)
		return false, err
	case f.ID == pingID:
		f.Close()
		return false, nil
	}
	l.mu.Lock()
	reply, asked := l.pending[f.ID]
	delete(l.pending, f.ID)
	if reply != nil {
		l.waiting--
	}
	if gives && !l.ending && l.waiting == 0 && !l.w.Buffered() && l.w.CanReady() {
		l.turn, gave = turnFree, true
	}
	l.mu.Unlock()
	if asked {
		<-l.slots
	}
	if reply != nil {
		reply <- f // there is room for one
	} else {
		f.Close()
	}
	return gave, nil
}

// close ends the connection, and everything that is under way on it.
func (l *link) close(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.shut(true)
	<-l.ended
}

// over reports whether the connection has ended.
func (l *link) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// why is the error that it ended with.
func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// call sends a request and returns the reply, which the caller closes. When ctx ends
// the request is cancelled; patient calls then wait for the reply all the same. The
// error is an ErrGone where the connection has ended, and an ErrUnknown too where the
// server may have begun with the request.
func (l *link) call(ctx context.Context, f *wire.Frame, patient bool) (*wire.Frame, error) {
	return l.callReporting(ctx, f, patient, nil)
}

// callReporting is call of a request whose reports are passed to progress, if that is not nil.
func (l *link) callReporting(ctx context.Context, f *wire.Frame, patient bool, progress func(report []byte)) (*wire.Frame, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case l.slots <- struct{}{}:
	case <-l.ended:
		return nil, l.why()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	reply, mine, err := l.begin(f)
	if err != nil {
		<-l.slots
		return nil, err
	}
	if progress != nil {
		l.watch(f.ID, newReports(progress))
		defer l.unwatch(f.ID)
	}
	if err := l.w.Send(f); err != nil {
		if l.unsent(f.ID) {
			<-l.slots
		}
		if mine {
			l.await(ctx, f)
		}
		var long *wire.TooLongError
		if errors.As(err, &long) {
			return nil, fmt.Errorf("%w: %w", kv.ErrTooLarge, err)
		}
		if errors.Is(err, wire.ErrNoFiles) {
			return nil, err
		}
		l.broke(err)
		return nil, gone(err)
	}
	if mine {
		l.await(ctx, f)
	}
	select {
	case got, ok := <-reply:
		return l.got(got, ok)
	case <-ctx.Done():
	}
	_ = l.w.Send(&wire.Frame{ID: f.ID, Op: wire.OpCancel}) // if it fails the connection ends
	if patient {
		got, ok := <-reply
		return l.got(got, ok)
	}
	if !l.giveUp(f.ID) {
		if got, ok := <-reply; ok {
			got.Close()
		}
	}
	return nil, ctx.Err()
}

// begin gives a request a number. If mine, it is the caller's turn to receive, and it calls
// await.
func (l *link) begin(f *wire.Frame) (reply chan *wire.Frame, mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, false, l.err
	}
	for taken := true; taken; _, taken = l.pending[l.next] {
		if l.next++; l.next == pingID {
			l.next++
		}
	}
	if !l.silence.looks {
		l.listen()
	}
	f.ID = l.next
	l.calls++
	reply = make(chan *wire.Frame, 1)
	l.pending[f.ID] = reply
	l.waiting++
	if mine = l.turn == turnFree; mine {
		l.turn = turnCaller
	}
	return reply, mine, nil
}

// unsent takes back the number of a request that was not sent. It is false if the
// connection has ended.
func (l *link) unsent(id uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	reply, ok := l.pending[id]
	delete(l.pending, id)
	if reply != nil {
		l.waiting--
	}
	return ok
}

// giveUp drops the reply to a request. It returns false if the reply is there, or the
// connection has ended.
func (l *link) giveUp(id uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.pending[id]
	if ok {
		l.pending[id] = nil
		l.waiting--
	}
	return ok
}

func (l *link) got(f *wire.Frame, ok bool) (*wire.Frame, error) {
	if !ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.bye {
			return nil, unknownError{l.err}
		}
		return nil, l.err
	}
	if f.Flags&wire.FlagError != 0 {
		defer f.Close()
		return nil, remote(f.Meta)
	}
	return f, nil
}

// ask is call with a JSON meta on both sides.
func ask[Out any](ctx context.Context, l *link, op wire.Op, in any) (out Out, err error) {
	meta, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	f, err := l.call(ctx, &wire.Frame{Op: op, Meta: meta}, false)
	if err != nil {
		return out, err
	}
	defer f.Close()
	if len(f.Meta) == 0 {
		return out, wire.ParseJSON(op, f.Body, &out)
	}
	return out, wire.ParseJSON(op, f.Meta, &out)
}
