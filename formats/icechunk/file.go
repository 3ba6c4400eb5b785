package icechunk

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
)

// magic begins each file but chunks and references.
const magic = "ICE🧊CHUNK"

// kind is the kind of a file, from its header.
type kind byte

const (
	kindSnapshot kind = 1
	kindManifest kind = 2
	kindLog      kind = 4
	kindRepo     kind = 6
)

// Versions of the specification, as headers number them. 2.1 has the number of 2.
const (
	spec1 = 1
	spec2 = 2
)

const (
	nameLen   = 24 // bytes of the name of the writer
	headerLen = len(magic) + nameLen + 3

	// maxBody is the longest file that is read, decompressed; a file may decompress
	// to at most expand times its length, or minBody.
	maxBody = 1 << 30
	minBody = 16 << 20
	expand  = 1 << 10

	// maxFile is the longest file, as it is stored.
	maxFile = 1 << 30
)

// Compression of a file.
const (
	plain      = 0
	compressed = 1
)

// readFile reads a file of the repository: the version of the specification that it
// follows, and its flatbuffer. A missing one is kv.ErrNotFound.
func readFile(ctx context.Context, dir kv.Reader, key string, want kind) (spec byte, body []byte, err error) {
	b, err := readBounded(ctx, dir, key, maxFile)
	if err != nil {
		return 0, nil, err
	}
	spec, body, err = parseFile(b, want)
	if err != nil {
		err = fmt.Errorf("icechunk: %s: %w", key, err)
	}
	return spec, body, err
}

// readBounded reads a value of at most so many bytes. kv.ErrNotFound is not wrapped.
func readBounded(ctx context.Context, dir kv.Reader, key string, most int64) ([]byte, error) {
	v, held, err := kv.LocateRange(ctx, dir, key, kv.AtMost(1<<20), 1<<20)
	if err == nil && v.Size() > most {
		err = formats.Invalid("it has %d bytes", v.Size())
	}
	if err == nil {
		if int64(len(held)) == v.Size() {
			return held, nil
		}
		held, err = kv.ReadValue(ctx, v, kv.All())
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		err = fmt.Errorf("icechunk: %s: %w", key, err)
	}
	return held, err
}

// parseFile checks the header of a file and decompresses the rest.
func parseFile(b []byte, want kind) (spec byte, body []byte, err error) {
	if len(b) < headerLen || string(b[:len(magic)]) != magic {
		return 0, nil, formats.Invalid("it does not begin as files of Icechunk do")
	}
	spec, is, compression := b[headerLen-3], kind(b[headerLen-2]), b[headerLen-1]
	b = b[headerLen:]
	switch {
	case spec != spec1 && spec != spec2:
		return 0, nil, formats.Unsupported("version %d of the specification of Icechunk", spec)
	case is != want:
		return 0, nil, formats.Invalid("it is a file of kind %d, not %d", is, want)
	case compression == plain:
		return spec, b, nil
	case compression != compressed:
		return 0, nil, formats.Unsupported("compression %d of files of Icechunk", compression)
	}
	body, err = decompress(b)
	return spec, body, err
}

// decompress reserves no more memory than the length of b allows.
func decompress(b []byte) ([]byte, error) {
	out, err := codecs.DecodeZstd(b, max(minBody, min(maxBody, expand*int64(len(b)))))
	if err != nil {
		return nil, formats.Invalid("%v", err)
	}
	return out, nil
}

// crockford is the alphabet in which ids are spelled.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// objectID names a snapshot, manifest or chunk, nodeID an array or group.
type (
	objectID [12]byte
	nodeID   [8]byte
)

// initialID is the ID of the first snapshot of every repository, which is empty.
var initialID, _ = parseID("1CECHNKREP0F1RSTCMT0")

func (id objectID) String() string { return crockford.EncodeToString(id[:]) }

// parseID reads an id as people may spell it: letters of either case, and letters
// that look like digits (I, L and O).
func parseID(s string) (id objectID, ok bool) {
	if len(s) != crockford.EncodedLen(len(id)) {
		return id, false
	}
	s = strings.NewReplacer("I", "1", "L", "1", "O", "0").Replace(strings.ToUpper(s))
	b, err := crockford.DecodeString(s)
	if err != nil {
		return id, false
	}
	copy(id[:], b)
	return id, id.String() == s
}

// id12 reads an id that may not be missing.
func (t table) id12(field int, name string) (id objectID) {
	t.id(field, name, id[:])
	return id
}

// id8 is id12 of a node.
func (t table) id8(field int, name string) (id nodeID) {
	t.id(field, name, id[:])
	return id
}

func (t table) id(field int, name string, id []byte) {
	b := t.fixed(field, len(id))
	if b == nil {
		t.f.fail("%s is missing", name)
	}
	copy(id, b)
}
