package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// Hello is the first frame of each side.
type Hello struct {
	Protocol int `json:"protocol"`
	// Version is the version of the module, for requests that need the same build.
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Program string `json:"program,omitempty"`
	// Capabilities are optional features of a side: [CapFiles], [CapBuckets] and [CapShare] of a client, [CapBodies] of a server.
	Capabilities []string `json:"capabilities,omitempty"`
	// Processes is set by the server for a client with [CapShare], as in [Share].
	Processes int `json:"processes,omitempty"`

	// Set by the server: the directory of the database.
	Dir string `json:"dir,omitempty"`
	// Identity is the random name of the database, and Lock the identity of its lock file
	// on this machine: device and inode.
	Identity string `json:"identity,omitempty"`
	Lock     string `json:"lock,omitempty"`
	MaxMeta  uint32 `json:"max_meta,omitempty"`
	MaxBody  uint32 `json:"max_body,omitempty"`
	Requests int    `json:"requests,omitempty"` // in flight
}

// CapFiles means that a client receives file descriptors.
const CapFiles = "files"

// CapShare means that a client has caches, and shares the memory for them with the server and
// its other clients.
const CapShare = "share"

// CapBuckets means that a client reads buckets with its own credentials; see [Bucket].
const CapBuckets = "buckets"

// Bucket asks a client for a part of an object in the bucket at a URL.
type Bucket struct {
	URL string `json:"url"`
	Key string `json:"key"`
	// N bytes from Off on, -1 for all. With Limit, the whole object, which has at most so many bytes.
	Off   int64 `json:"off,omitempty"`
	N     int64 `json:"n,omitempty"`
	Limit int64 `json:"limit,omitempty"`
	// Tagged asks for the tag, too, and for the object only if it has another tag than Tag.
	Tagged bool   `json:"tagged,omitempty"`
	Tag    string `json:"tag,omitempty"`
}

// BucketTag answers a Bucket with Tagged.
type BucketTag struct {
	Tag  *string    `json:"tag"`
	Time *time.Time `json:"time"`
}

// Share says how many processes share memory, the server and the client among them.
type Share struct {
	Processes int `json:"processes"`
}

// Visit begins the use of the database by a client that leases versions, before its first lease.
type Visit struct {
	// Peer is the name that the client got in an earlier visit, "" in its first one.
	Peer string `json:"peer,omitempty"`
	// Versions are the ids of the commits that the client has leased.
	Versions []string `json:"versions,omitempty"`
}

// Visited answers a Visit. If Peer is not the name of the client, a descriptor comes with it,
// which the client closes when it ends: versions are kept for it until then. Peer is "" if
// versions are kept for the connection only.
type Visited struct {
	Peer string `json:"peer,omitempty"`
	// Leases are the leases of the versions, in their order.
	Leases []Renewed `json:"leases,omitempty"`
}

// Renewed is the lease of one version, or the error that prevents the lease.
type Renewed struct {
	View uint32 `json:"view,omitempty"`
	// Failure is a [Failure].
	Failure json.RawMessage `json:"failure,omitempty"`
}

// Left answers a client that leaves.
type Left struct {
	// Ends says that the server ends now, since it has no other client.
	Ends bool `json:"ends,omitempty"`
}

// Failure is the meta of a reply with FlagError.
type Failure struct {
	// Code is the kind of error, for programs; docs/protocol.md lists them.
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`

	// Of a conflict.
	Branch    string     `json:"branch,omitempty"`
	Base      string     `json:"base,omitempty"`
	Head      string     `json:"head,omitempty"`
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Of a conditional write: the current value.
	Key  string `json:"key,omitempty"`
	Want string `json:"want,omitempty"`
	Have string `json:"have,omitempty"`
	// Of a base that is refused: commits whose changes a merge would undo.
	Undone []Commit `json:"undone,omitempty"`
	// Of damaged payloads: what and where they are.
	Damage json.RawMessage `json:"damage,omitempty"`
}

// Conflict is one reason why a commit is refused.
type Conflict struct {
	Kind   string   `json:"kind"`
	Path   string   `json:"path"`
	Also   []string `json:"also,omitempty"`
	Chunk  []int64  `json:"chunk,omitempty"`
	Field  string   `json:"field,omitempty"`
	Base   string   `json:"base,omitempty"`
	Ours   string   `json:"ours,omitempty"`
	Theirs string   `json:"theirs,omitempty"`
	Same   bool     `json:"same,omitempty"`
}

// Handle names a view that the connection has open.
type Handle struct {
	View uint32 `json:"view"`
}

// Forget names a block that the client does not need any more. The number 0 names nothing.
type Forget struct {
	Block uint32 `json:"block,omitempty"`
}

// Open names a revision, or a session as "~" and its id.
type Open struct {
	Rev string `json:"rev"`
}

// View is a session that was opened.
type View struct {
	View    uint32   `json:"view"`
	Session *Session `json:"session,omitempty"`
}

// Lease is a version that is kept while the view is open.
type Lease struct {
	View uint32 `json:"view"`
	// Record is the record of the commit, as docs/format.md has it; its hash is the id.
	Record []byte `json:"record"`
	ID     string `json:"id"`
}

// Ancestors asks for the records of a commit and of the commits before it. The key of each
// is its id, followed by the time of 8 bytes at which the version expired, if it has.
type Ancestors struct {
	From  string `json:"from"`
	Limit int    `json:"limit"`
}

// Records asks for the records of a space of the index, with keys in [From, To).
type Records struct {
	Space   byte   `json:"space"`
	From    []byte `json:"from,omitempty"`
	To      []byte `json:"to,omitempty"` // nil is the end of the space
	Reverse bool   `json:"reverse,omitempty"`
	Kept    uint64 `json:"kept,omitempty"` // the moment under that number, which "keep" reported
}

// Pack asks for the file of a pack, which holds a payload, or for N bytes of the payload from
// byte Off on.
type Pack struct {
	Pack   string `json:"pack"` // in hexadecimal form
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
	Off    uint64 `json:"off,omitempty"`
	N      uint64 `json:"n,omitempty"`
}

// Commit is a version.
type Commit struct {
	ID         string            `json:"id"`
	Parents    []string          `json:"parents,omitempty"`
	Generation uint64            `json:"generation"`
	Author     string            `json:"author"`
	Time       time.Time         `json:"time"`
	Message    string            `json:"message"`
	Properties map[string]string `json:"properties,omitempty"`
	// Record, of a commit that was just made, is as in Lease.
	Record []byte `json:"record,omitempty"`
	// Decided are conflicts that choices decided, the first 1,000.
	Decided []Decided `json:"decided,omitempty"`
}

// Decided is a conflict that a choice decided.
type Decided struct {
	Conflict
	Take string `json:"take"` // as of Choice
}

// Begin opens a new session on a branch.
type Begin struct {
	Branch string `json:"branch,omitempty"`
	Label  string `json:"label,omitempty"`
	// ID and Base belong to a session without a savepoint of a server that was killed.
	ID   string `json:"id,omitempty"`
	Base string `json:"base,omitempty"`
}

// Session describes a session.
type Session struct {
	ID      string    `json:"id"`
	Branch  string    `json:"branch"`
	Base    string    `json:"base"`
	Created time.Time `json:"created"`
	Saved   time.Time `json:"saved"`
	Open    bool      `json:"open"`
	Label   string    `json:"label,omitempty"`
	Used    time.Time `json:"used,omitzero"`
	// The process that began it; "unknown" and 0 if it is not known.
	Program string `json:"program,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	User    string `json:"user,omitempty"`
}

// Publish commits a session.
type Publish struct {
	Handle
	Message    string            `json:"message"`
	Author     string            `json:"author,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	AllowEmpty bool              `json:"allow_empty,omitempty"`
	DryRun     bool              `json:"dry_run,omitempty"`
	// Choices decide conflicts; the choice with the longest matching path is
	// used.
	Choices []Choice `json:"choices,omitempty"`
	// Time is the time of the commit; zero is now.
	Time time.Time `json:"time,omitzero"`
	// Decided asks for the conflicts that choices decided.
	Decided bool `json:"decided,omitempty"`
}

// Choice decides conflicts at and below a path: "ours" or "theirs".
type Choice struct {
	Path string `json:"path"`
	Take string `json:"take"`
}

// Refs are the branches and tags.
type Refs struct {
	Branches []Ref `json:"branches"`
	Tags     []Ref `json:"tags"`
}

// Ref is a branch or tag.
type Ref struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// Ask has the server do the work called name.
type Ask struct {
	Name string          `json:"name"`
	In   json.RawMessage `json:"in"`
}

// ParseJSON reads a JSON meta. No meta is an empty object.
func ParseJSON(op Op, meta []byte, v any) error {
	if len(meta) == 0 {
		return nil
	}
	if err := json.Unmarshal(meta, v); err != nil {
		return fmt.Errorf("%w: meta of %v: %v", ErrProtocol, op, err)
	}
	return nil
}
