package engine

import (
	"context"

	"github.com/zarrdb/zarrdb/engine/internal/convert"
	"github.com/zarrdb/zarrdb/zarr"
)

// Converted presents a hierarchy in another format, without a copy: documents
// are made when they are read, and chunks are chunks of the source under other
// keys. An array or group that has no form in the format is not listed, and
// [ErrConvert] when one of its keys is read. Converted metadata is not
// consolidated. Keys that belong to no node are left out. Safe for concurrent
// use.
type Converted = convert.View

var (
	// ErrConvert means that an array or group cannot be stored in another format as
	// it is. The error names the node and the part that has no form there.
	ErrConvert = convert.ErrConvert
	// ErrRecode is added to an ErrConvert that ExportOptions.Recode would avoid.
	ErrRecode = convert.ErrRecode
)

// Converted is the version in another format.
func (s *Snapshot) Converted(format zarr.Version) *Converted {
	return convert.NewView(s.nodes.view, s.nodes.open, format, true)
}

// Converted returns a view of the session in another format.
func (s *Session) Converted(format zarr.Version) *Converted {
	return convert.NewView(s.nodes.view, s.nodes.open, format, false)
}

// Converted returns a view of the URL's hierarchy in another format. Errors are
// as for [Source.Hierarchy].
func (s *Source) Converted(ctx context.Context, format zarr.Version) (*Converted, error) {
	store, at, err := s.hierarchy(ctx)
	if err != nil {
		return nil, err
	}
	o, err := s.openBelow(ctx, at)
	if err != nil {
		return nil, err
	}
	return convert.NewView(store, o, format, false), nil
}
