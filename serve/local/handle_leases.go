package local

import (
	"context"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// leases are the files whose descriptors a client has, by their numbers in
// replies.
type leases struct {
	mu      sync.Mutex // held while a descriptor is sent: it goes before replies that rely on it
	numbers map[kv.FileID]uint32
	files   map[uint32]kv.FileID
	last    uint32
}

// verified are the values that were compared with their checksums, for all connections:
// it takes longer than to send a place.
type verified struct {
	mu     sync.Mutex
	values map[verifiedValue]struct{}
}

// verifiedValue is a value where it was. A place may get another one when its file is
// written anew.
type verifiedValue struct {
	at kv.Place
	id kv.ID
}

// maxVerified bounds the values that are remembered.
const maxVerified = 1 << 16

// forget takes note that a client has closed a file.
func (l *leases) forget(number uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if file, ok := l.files[number]; ok {
		delete(l.numbers, file)
		delete(l.files, number)
	}
}

// check verifies a part of a value, unless all of it was verified before.
func (c *verified) check(ctx context.Context, v kv.Value, at kv.Place, off, n int64) error {
	key := verifiedValue{at, v.ID()}
	c.mu.Lock()
	_, known := c.values[key]
	c.mu.Unlock()
	if known {
		return nil
	}
	if err := v.View(ctx, kv.Span(off, n), func([]byte) error { return nil }); err != nil || n < v.Size() {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil || len(c.values) >= maxVerified {
		c.values = map[verifiedValue]struct{}{}
	}
	c.values[key] = struct{}{}
	return nil
}

// sendPlace sends where a part of a value is, if it is in a file that the client can
// be given.
func (c *conn) sendPlace(ctx context.Context, f *wire.Frame, v kv.Value, found *wire.Found, off, n int64) (done bool, err error) {
	placed, ok := v.(kv.Placed)
	if !ok {
		return false, nil
	}
	at, err := placed.Place()
	if err != nil {
		return false, nil // sending its bytes returns the error
	}
	l := &c.leases
	if err := c.s.verified.check(ctx, v, at, off, n); err != nil {
		return false, err
	}
	l.mu.Lock()
	number, known := l.numbers[at.File]
	if known {
		l.mu.Unlock()
		return true, c.reply(f, found, number, at.Offset+off, n)
	}
	defer l.mu.Unlock()
	lease, err := placed.Lease()
	if err != nil {
		return false, nil
	}
	defer lease.Close()
	at = lease.Place()
	if number, known := l.numbers[at.File]; known {
		return true, c.reply(f, found, number, at.Offset+off, n)
	}
	if l.numbers == nil {
		l.numbers, l.files = map[kv.FileID]uint32{}, map[uint32]kv.FileID{}
	}
	l.last++
	l.numbers[at.File], l.files[l.last] = l.last, at.File
	return true, c.reply(f, found, l.last, at.Offset+off, n, lease)
}

func (c *conn) reply(f *wire.Frame, found *wire.Found, file uint32, off, n int64, pass ...wire.Descriptor) error {
	place := wire.Place{Found: *found, File: file, Off: off, N: n}
	return c.send(f, &wire.Frame{Flags: wire.FlagPlace, Meta: place.Append(nil), Pass: pass})
}
