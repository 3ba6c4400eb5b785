package local

import (
	"context"
	"encoding/json"

	"github.com/zarrdb/zarrdb/serve/wire"
)

// ArrayInfo describes an array.
type ArrayInfo = wire.ArrayInfo

// ArrayInfo describes the array at a path.
func (s *shelf) ArrayInfo(ctx context.Context, path string) (out ArrayInfo, err error) {
	err = s.read(ctx, func(l *link, handle uint32) (err error) {
		out, err = ask[ArrayInfo](ctx, l, wire.OpArray, wire.Array{View: handle, Path: path})
		return err
	})
	return out, err
}

// ReadArray returns the elements that a selection names, as on a command line: in C
// order, little-endian. The server decodes them, with the chunks that it has cached.
func (s *shelf) ReadArray(ctx context.Context, path, sel string) (b []byte, shape []int64, err error) {
	err = s.read(ctx, func(l *link, handle uint32) error {
		meta, err := json.Marshal(wire.Array{View: handle, Path: path, Select: sel})
		if err != nil {
			return err
		}
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpRead, Meta: meta}, false)
		if err != nil {
			return err
		}
		defer f.Close()
		var out wire.Elements
		if err := wire.ParseJSON(f.Op, f.Meta, &out); err != nil {
			return err
		}
		b, shape = f.Body, out.Shape
		return nil
	})
	return b, shape, err
}

// WriteArray writes elements to a selection; see [View.ReadArray]. Unselected
// elements of a chunk keep their values, even under concurrent writes. The write
// does not depend on earlier reads.
func (s *Session) WriteArray(ctx context.Context, path, sel string, b []byte) error {
	err := s.read(ctx, func(l *link, handle uint32) error {
		meta, err := json.Marshal(wire.Array{View: handle, Path: path, Select: sel})
		if err != nil {
			return err
		}
		f, err := l.call(ctx, &wire.Frame{Op: wire.OpWrite, Meta: meta, Body: b}, false)
		if err == nil {
			f.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.state.Lock()
	defer s.state.Unlock()
	s.dirty++
	return nil
}
