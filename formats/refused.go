package formats

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
)

// Refusal describes an array that is there and cannot be read, so that its
// neighbours can: it is listed, and opening it gives the reason.
type Refusal struct {
	// Scheme is the scheme of the format.
	Scheme string
	// Err is the reason. Where it is ErrUnsupported, the array can still be copied,
	// linked and exported as it is; else it is damaged.
	Err error
	// Shape and Chunks describe the array. Without Chunks it has no dimensions.
	Shape, Chunks []int64
}

// Document returns the Zarr v3 document of the array. Its only codec is
// [RefusedCodec].
func (r Refusal) Document() []byte {
	m := []any{"zarr_format", 3, "node_type", "array"}
	shape, chunks := r.Shape, r.Chunks
	if len(chunks) == 0 || len(shape) != len(chunks) {
		shape, chunks = []int64{}, []int64{}
	}
	reason := r.Err.Error()
	for _, said := range []error{ErrFormat, ErrUnsupported, kv.ErrCorrupt} { // the kind of the error
		reason = strings.TrimPrefix(reason, said.Error()+": ")
	}
	const most = 1000
	if len(reason) > most {
		reason = reason[:most] + "…"
	}
	m = append(m, "shape", shape, "data_type", "uint8",
		"chunk_grid", Named("regular", codecs.Object("chunk_shape", chunks)),
		"chunk_key_encoding", Named("v2", codecs.Object("separator", "/")),
		"fill_value", 0,
		"codecs", []any{Named(refusedName(r.Scheme), codecs.Object("reason", reason, "damaged", !errors.Is(r.Err, ErrUnsupported)))})
	return codecs.Object(m...)
}

// Edges returns the entry of a dimension in "chunk_shapes" of a rectilinear grid, where the
// last chunk is cut at the border.
func Edges(size, chunk int64) any {
	switch whole, rest := size/chunk, size%chunk; {
	case rest == 0:
		return chunk
	case whole == 0:
		return []any{rest}
	default:
		return []any{[]int64{chunk, whole}, rest}
	}
}

// Named returns an extension in a Zarr v3 document: an object of a name and a configuration.
func Named(name string, configuration json.RawMessage) json.RawMessage {
	return codecs.Object("name", name, "configuration", configuration)
}

func refusedName(scheme string) string { return "zarrdb." + scheme + "_refused" }

// RefusedCodec returns the codec that documents of refused arrays name, for
// Format.Codecs. Opening an array with it fails: with codecs.ErrUnknown, as for any
// codec that is not known, or with ErrFormat if the array is damaged.
func RefusedCodec(scheme string) codecs.Entry {
	return codecs.Entry{V3: []string{refusedName(scheme)}, Kind: codecs.ArrayToBytes, Parse: func(c codecs.Config) (codecs.Codec, error) {
		f := c.Fields()
		reason, damaged := f.String("reason", ""), f.Bool("damaged", false)
		if err := f.Err(); err != nil {
			return nil, err
		}
		return nil, refusedError{reason, damaged}
	}}
}

// refusedError is of an array that is not read.
type refusedError struct {
	reason  string
	damaged bool
}

func (e refusedError) Error() string { return e.reason }
func (e refusedError) Is(target error) bool {
	if e.damaged {
		return target == ErrFormat
	}
	return target == codecs.ErrUnknown || target == ErrUnsupported
}
