package kv

import "context"

// Streamer is an optional interface of a Value that yields its bytes in order,
// in pieces, at the cost and with the checks of one View of all. Use [Stream].
type Streamer interface {
	// Stream is [Stream] for this value.
	Stream(ctx context.Context, fn func(piece []byte) error) error
}

// Streams reports whether v itself yields pieces, so that it need not be in
// memory at once.
func Streams(v Value) bool {
	_, ok := v.(Streamer)
	return ok
}

// Stream calls fn with all bytes of v in order. A piece is valid until fn
// returns. Checks of the whole value follow the last piece: the bytes are
// correct only if Stream returns nil. The first error, of reading or of fn, ends
// it.
//
// The fall-back is one View of all.
func Stream(ctx context.Context, v Value, fn func(piece []byte) error) error {
	if s, ok := v.(Streamer); ok {
		return s.Stream(ctx, fn)
	}
	return v.View(ctx, All(), fn)
}

// pieceBytes is how much Pieces views at a time: on a server each piece is a request.
const pieceBytes = 8 << 20

// Pieces views n bytes of v from off on, in order, a few MiB at a time: for values
// that need no check of the whole.
func Pieces(ctx context.Context, v Value, off, n int64, fn func(piece []byte) error) error {
	for end := off + n; off < end; off += pieceBytes {
		if err := v.View(ctx, Span(off, min(pieceBytes, end-off)), fn); err != nil {
			return err
		}
	}
	return nil
}

// Placed is an optional interface of a Value that lies in a file of this machine, so that it costs little to read it again.
type Placed interface{ Placed() }
