package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Protocol is the number of this protocol. Both sides of a connection have the
// same; the frame of a hello is the same in all of them.
const Protocol = 1

// headerSize is the length of the header of a frame.
const headerSize = 16

// Bounds of a frame, for a side that has no stricter bounds.
const (
	MaxMeta  = 4 << 20
	MaxBody  = 512 << 20
	maxFiles = 4
)

// ErrProtocol means that the other side violated the protocol. The connection
// cannot be used any more.
var ErrProtocol = errors.New("wire: protocol violated")

// Flags of a frame.
type Flags uint16

const (
	// FlagReply is set in all frames of the server.
	FlagReply Flags = 1 << iota
	// FlagError means that the meta is a [Failure].
	FlagError
	_ // of earlier versions
	_ // of earlier versions
	_ // of earlier versions
	// FlagReport means that the body is a report about the request, whose reply follows.
	FlagReport
	// FlagBlock means that the body of the request lies in a block; see [AppendInBlock].
	FlagBlock

	allFlags = FlagReply | FlagError | FlagReport | FlagBlock
)

// Op is an operation.
type Op uint8

// Operations. The comment names the meta of request and reply.
const (
	OpHello     Op = iota + 1 // Hello, Hello
	OpCancel                  // the id of a request, without reply
	OpBye                     // from the server: nothing
	_                         // of earlier versions
	_                         // of earlier versions
	OpSet                     // Set, the new id
	OpDelete                  // Set, nothing
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	OpOpen                    // Open, View
	OpClose                   // Handle, nothing
	OpForget                  // Forget, without reply
	_                         // of earlier versions
	OpResolve                 // Open, Commit
	OpRefs                    // nothing, Refs
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	OpBegin                   // Begin, View
	_                         // of earlier versions
	OpSavepoint               // Handle, Session
	_                         // of earlier versions
	_                         // of earlier versions
	OpCommit                  // Publish, Commit
	OpDiscard                 // Handle, nothing
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	OpRebase                  // Rebase, Session
	OpFork                    // Fork, View
	OpJoin                    // Join, nothing
	_                         // of earlier versions
	_                         // of earlier versions
	_                         // of earlier versions
	OpLeave                   // none, Left
	OpLease                   // Open, Lease
	OpPages                   // Pages, lengths of the pages in the body
	OpPack                    // Pack, nothing and a descriptor
	OpPayload                 // Pack, nothing; the bytes are the body
	OpRecall                  // from the server, and back from the client: nothing
	OpAncestors               // Ancestors, records in the body; see SplitRecords
	OpRecords                 // Records, whether there are more (1 byte); records in the body
	OpAsk                     // Ask, nothing; the answer in JSON is the body, as are reports before it
	OpValue                   // Stat, the value as it is in the index
	OpRoots                   // Stat, the roots of the session
	OpOwnPages                // OwnPages, lengths of the pages in the body
	OpApply                   // Stat with entries of a log in the body, nothing
	OpStore                   // Stat with bytes in the body, the value that names them
	OpStage                   // Stage with pages in the body, nothing
	OpSwap                    // Stat with roots in the body, nothing
	OpShare                   // from the server: Share
	OpVisit                   // Visit, Visited and perhaps a descriptor
	OpWatch                   // Watch and perhaps a descriptor, nothing
	OpPing                    // nothing, nothing: a server that runs answers at once
	OpBucket                  // nothing and a descriptor, nothing; on that connection, from the server: Bucket, BucketTag or nothing, and bytes
	numOps
)

var opNames = [numOps]string{
	"", "hello", "cancel", "bye", "", "", "set", "delete", "", "", "", "open", "close", "forget",
	"", "resolve", "refs", "", "", "", "", "begin", "", "savepoint", "",
	"", "commit", "discard", "", "", "", "",
	"", "", "", "", "rebase", "fork", "join", "", "", "", "leave", "lease", "pages", "pack", "payload", "recall", "ancestors", "records",
	"ask", "value", "roots", "own_pages", "apply", "store", "stage", "swap", "share", "visit", "watch", "ping",
	"bucket",
}

// Later reports whether an operation is of a later version than this one.
func (o Op) Later() bool { return o >= numOps }

func (o Op) String() string {
	if o < numOps && opNames[o] != "" {
		return opNames[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Quick reports whether an operation is answered without decoding arrays and without
// waiting for the disk to write, on the whole, so that waiting for it awake makes sense.
func (o Op) Quick() bool {
	switch o {
	case OpSet, OpDelete, OpOpen, OpClose, OpBegin, OpResolve, OpRefs, OpLease, OpPages, OpPack, OpPayload, OpAncestors, OpRecords,
		OpValue, OpRoots, OpWatch, OpOwnPages, OpApply, OpStore, OpStage:
		return true
	}
	return false
}

// Header begins a frame.
type Header struct {
	ID    uint32
	Op    Op
	Files uint8 // descriptors that come with the first byte
	Flags Flags
	// Meta and Body are the lengths of the two parts that follow.
	Meta, Body uint32
}

// Append appends the header to dst.
func (h *Header) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, h.ID)
	dst = append(dst, byte(h.Op), h.Files)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.Flags))
	dst = binary.LittleEndian.AppendUint32(dst, h.Meta)
	return binary.LittleEndian.AppendUint32(dst, h.Body)
}

// Limits are the longest frames that a side accepts.
type Limits struct {
	Meta, Body uint32 // default MaxMeta, MaxBody
}

func (l Limits) withDefaults() Limits {
	if l.Meta == 0 {
		l.Meta = MaxMeta
	}
	if l.Body == 0 {
		l.Body = MaxBody
	}
	return l
}

// parseHeader reads a header and compares it with limits, so that memory can be
// reserved for the parts. The error is [ErrProtocol].
func parseHeader(b []byte, limits Limits) (Header, error) {
	limits = limits.withDefaults()
	if len(b) < headerSize {
		return Header{}, fmt.Errorf("%w: a header of %d bytes", ErrProtocol, len(b))
	}
	h := Header{
		ID: binary.LittleEndian.Uint32(b), Op: Op(b[4]), Files: b[5], Flags: Flags(binary.LittleEndian.Uint16(b[6:])),
		Meta: binary.LittleEndian.Uint32(b[8:]), Body: binary.LittleEndian.Uint32(b[12:]),
	}
	switch {
	case h.Op == 0 || h.Flags&^allFlags != 0:
		return Header{}, fmt.Errorf("%w: operation %d with flags %#x; is that a client of zarrdb?", ErrProtocol, b[4], uint16(h.Flags))
	case h.Files > maxFiles:
		return Header{}, fmt.Errorf("%w: %d descriptors with one frame, where %d are allowed", ErrProtocol, h.Files, maxFiles)
	case h.Meta > limits.Meta:
		return Header{}, fmt.Errorf("%w: %v with a meta of %d bytes, where %d are allowed", ErrProtocol, h.Op, h.Meta, limits.Meta)
	case h.Body > limits.Body:
		return Header{}, fmt.Errorf("%w: %v with a body of %d bytes, where %d are allowed", ErrProtocol, h.Op, h.Body, limits.Body)
	}
	return h, nil
}
