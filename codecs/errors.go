package codecs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/internal/fault"
)

var (
	// ErrCorrupt marks encoded bytes that do not decode to a chunk of the
	// metadata. It survives every wrapping up to the command line.
	ErrCorrupt = fault.New("codecs: corrupt data", fault.ErrCorrupt)

	// ErrUnknown means that no codec of that name is registered.
	ErrUnknown = errors.New("codecs: unknown codec")

	// ErrConfig means that a codec's configuration is not allowed, by itself
	// or for the data type and shape that it is bound to.
	ErrConfig = errors.New("codecs: bad configuration")

	// ErrNoForm means that a chain cannot be written in the metadata of the
	// other format version.
	ErrNoForm = errors.New("codecs: has no form in this format version")
)

// ConfigError names the wrong codec, its list and the wrong member of its
// configuration. It is ErrUnknown if no codec of that name is registered, and
// ErrConfig otherwise.
//
// It prints as codecs[1].configuration.level: …; for an inner codec of a shard
// Err is a ConfigError again, and its place follows the place of the outer one.
type ConfigError struct {
	// List is the metadata member that holds the codec: "codecs",
	// "index_codecs", "filters" or "compressor".
	List string
	// Index is the position in the list, -1 if List holds one codec or the
	// whole list is meant.
	Index int
	// Codec is the name in the metadata, if known.
	Codec string
	// Field is the member of the configuration, "" for the whole configuration.
	Field string
	// Err is the reason.
	Err error
}

// Error returns the position, the codec's name and the reason.
func (e *ConfigError) Error() string {
	place := e.place()
	err := e.Err
	name := e.Codec
	for {
		inner, ok := err.(*ConfigError)
		if !ok {
			break
		}
		if p := inner.place(); p != "" && p[0] != '.' && place != "" {
			place += ".configuration." + p
		} else {
			place += p
		}
		if inner.Codec != "" {
			name = inner.Codec
		}
		err = inner.Err
	}
	msg := err.Error()
	if name != "" && !errors.Is(err, ErrUnknown) {
		msg = name + ": " + msg
	}
	if place == "" {
		return "codecs: " + msg
	}
	return place + ": " + msg
}

// place returns the path of the wrong member, relative to the owner of the list.
func (e *ConfigError) place() string {
	s := e.List
	if e.Index >= 0 && s != "" {
		s += "[" + strconv.Itoa(e.Index) + "]"
	}
	if e.Field == "" {
		return s
	}
	if s == "" {
		return ".configuration." + e.Field
	}
	switch e.List {
	case "filters", "compressor", "compression_opts": // the last one of v1
		return s + "." + e.Field
	}
	return s + ".configuration." + e.Field
}

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// Is makes every ConfigError an ErrConfig, unless it is an ErrUnknown or an
// ErrNoForm.
func (e *ConfigError) Is(target error) bool {
	return target == ErrConfig && !errors.Is(e.Err, ErrUnknown) && !errors.Is(e.Err, ErrNoForm)
}

// BadField returns an error about one member of a codec's configuration, for use
// in Parse and Bind: the chain adds the position of the codec. An empty field
// means the codec as a whole.
func BadField(field, format string, args ...any) error {
	return &ConfigError{Index: -1, Field: field, Err: fmt.Errorf(format, args...)}
}

// Corruptf returns an ErrCorrupt whose text has the codec and the reason.
func Corruptf(codec, format string, args ...any) error {
	return &corruptError{codec: codec, err: fmt.Errorf(format, args...)}
}

type corruptError struct {
	codec string
	err   error
}

func (e *corruptError) Error() string {
	return "codecs: corrupt data: " + e.codec + ": " + strings.TrimPrefix(e.err.Error(), e.codec+": ")
}
func (e *corruptError) Unwrap() error        { return e.err }
func (e *corruptError) Is(target error) bool { return fault.Matches(ErrCorrupt, target) }

// errVariable is a bug of the caller.
var errVariable = errors.New("codecs: elements of variable length have no strides")

func errSize(n int, want int64) error {
	return fmt.Errorf("codecs: %d bytes for a chunk of %d", n, want)
}

func errStrides(n, want int) error {
	return fmt.Errorf("codecs: %d strides for a box of rank %d", n, want)
}

func noForm(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNoForm}, args...)...)
}
