package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Peers send requests for work that happens where the index is, such as collections. While
// such a request is under way the server sends reports about it:
//
//	source.Ask ── ask ──▶ conn.ask ──▶ engine.DB.Answer
//	 progress ◀── report ──┘ (any number, then the reply)

// ask carries out the request of a peer.
func (c *conn) ask(ctx context.Context, f *wire.Frame) error {
	var in wire.Ask
	if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return err
	}
	h, err := c.hold(ctx, memoryFirst)
	if err != nil {
		return err
	}
	defer h.free()
	lasts := txn.Lasts(in.Name)
	if lasts {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.s.staying, func() { cancel(ErrGone) })()
	}
	told := newReports(func(report []byte) { // a peer that is stopped does not delay the work
		// If it fails the connection ends, and so does ctx.
		_ = c.w.Send(&wire.Frame{ID: f.ID, Op: f.Op, Flags: wire.FlagReply | wire.FlagReport, Body: report})
	})
	out, err := c.s.t.Answer(ctx, c.who, c.s.name, in.Name, in.In, told.add)
	told.end()
	if lasts && err != nil && errors.Is(context.Cause(ctx), ErrGone) {
		return ErrGone
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = c.otherVersion(true, err)
	}
	if err != nil {
		return err
	}
	h.set(int64(len(out)))
	return c.send(f, &wire.Frame{Body: out})
}

// Ask implements [txn.Remote]. A request that changes nothing, that the server has not begun
// or has cancelled because it ends, or that ends a session is repeated on a new connection. For any
// other request, a lost answer is an [ErrUnknown]. If ctx ends, Ask waits until the server has
// ended a request that changes something.
func (s source) Ask(ctx context.Context, name string, in []byte, progress func(report []byte)) (out []byte, err error) {
	meta, err := json.Marshal(wire.Ask{Name: name, In: in})
	if err != nil {
		return nil, err
	}
	changes := txn.Changes(name, in)
	ask := func(l *link) error {
		f, err := l.callReporting(ctx, &wire.Frame{Op: wire.OpAsk, Meta: meta}, changes, progress)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f.Body
		return nil
	}
	if !changes {
		return out, s.c.again(ctx, ask)
	}
	for n, again := 0, false; ; again = true {
		l, err := s.c.link(ctx)
		if err != nil {
			return nil, err
		}
		err = ask(l)
		if again && name == txn.AskAbortSession && errors.Is(err, txn.ErrNoRef) { // the try before has ended it
			return []byte("{}"), nil
		}
		if !errors.Is(err, ErrGone) {
			return out, err
		}
		n += l.broken()
		begun := errors.Is(err, ErrUnknown) && name != txn.AskAbortSession
		if begun {
			err = fmt.Errorf("%w; look whether it took place before you repeat it", err)
		}
		if begun || n >= reconnects || ctx.Err() != nil {
			return nil, err
		}
	}
}

// reports passes the reports of a request to a function, one after the other, so that a slow
// function does not keep the connection from receiving.
type reports struct {
	mu   sync.Mutex
	list [][]byte
	more chan struct{} // has room for one
	stop chan struct{}
	done chan struct{}
}

func newReports(fn func(report []byte)) *reports {
	r := &reports{more: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for stopped := false; !stopped; {
			select {
			case <-r.more:
			case <-r.stop:
				stopped = true
			}
			r.mu.Lock()
			list := r.list
			r.list = nil
			r.mu.Unlock()
			for _, b := range list {
				fn(b)
			}
		}
	}()
	return r
}

func (r *reports) add(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, b)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// end returns when the function was called for all reports.
func (r *reports) end() {
	close(r.stop)
	<-r.done
}

// reportsOf returns the receiver of the reports of a request, nil if it has none.
func (l *link) reportsOf(id uint32) *reports {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reports[id]
}

// watch notes the receiver of the reports of a request.
func (l *link) watch(id uint32, r *reports) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reports == nil {
		l.reports = map[uint32]*reports{}
	}
	l.reports[id] = r
}

// unwatch ends the reports of a request.
func (l *link) unwatch(id uint32) {
	l.mu.Lock()
	r := l.reports[id]
	delete(l.reports, id)
	l.mu.Unlock()
	r.end()
}
