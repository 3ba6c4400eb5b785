package builtin

import (
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/filter"
	"github.com/zarrdb/zarrdb/codecs/object"
)

// Registry returns a new registry with the built-in codecs. The caller may
// register more.
func Registry() *codecs.Registry {
	return codecs.NewRegistry(slices.Concat(codecs.Entries(), filter.Entries(), object.Entries())...)
}
