package namespace

// Policy is what this package must know about the documents that Zarr puts
// beside its chunks. The engine supplies it; it does no I/O and is safe for
// concurrent use. Documents may be anything at all: a Policy answers "no" for
// what it does not understand and never fails because of it. Its answers are
// functions of their arguments alone, because they shape what is stored.
type Policy interface {
	// Node reports whether documents of this name, the last component of
	// their keys, make their directory an array or a group (".zarray",
	// ".zgroup", "zarr.json"). Only such documents are read and passed to
	// Forms and Structure, so that millions of other keys are stored unread.
	Node(name string) bool

	// Forms returns the chunk key forms that a document names. Keys of these
	// forms below the document's directory are kept in a chunk map.
	Forms(name string, doc []byte) []Form

	// Array reports whether a document is the metadata of an array.
	Array(name string, doc []byte) bool

	// Structure returns the part of an array's metadata that its chunks depend on. ok is
	// that of Array.
	Structure(name string, doc []byte) (s Structure, ok bool)

	// WithAttributes returns a node document with the attributes of another document of
	// the same name, or nil if one of them cannot be read.
	WithAttributes(name string, doc, attributes []byte) []byte

	// MergeDocument merges three states of a metadata document field by field;
	// nil stands for absent. Fields that both sides changed differently are
	// returned as conflicts, and merged then holds ours for them. A document
	// that cannot be merged by fields is one conflict without a field. If
	// strict, fields that both sides changed to the same value are conflicts
	// too, and so is a document that both made, but for the fields that make it
	// a group. A field that both removed is not one.
	MergeDocument(name string, base, ours, theirs []byte, strict bool) (merged []byte, conflicts []FieldConflict, err error)

	// Metadata reports whether documents of this name are metadata: documents of which
	// another document may hold a copy (".zattrs"), and documents that hold copies.
	Metadata(name string) bool

	// Copies returns the copies of documents below that a node document holds, nil
	// for none, and the document without them, with one layout for documents with and
	// without copies. A merge removes copies where they may be stale.
	Copies(name string, doc []byte) (copies, rest []byte)

	// Copying are the names of the documents that may hold copies of documents below.
	Copying() []string

	// WithoutCopies returns a document without the copies that it holds of what is at or below
	// a path, which is relative to its directory; nil if it holds none.
	WithoutCopies(name string, doc []byte, path string) []byte

	// Derived reports whether a document of this name is a copy of others
	// (".zmetadata"). It never conflicts: a merge combines the copies of both
	// sides with MergeDocument or, where that finds a conflict or one side
	// has removed it, leaves it out.
	Derived(name string) bool
}

// Form is a way to write chunk coordinates as a key: Prefix, then Rank decimal
// numbers with Sep between them. With "c/" '/' 3 a key is c/0/1/2.
//
// Sep is '.' or '/', Rank is at most 32, Prefix has no digits and at most 64
// bytes; other forms are ignored and their keys stay documents. Rank 0 has one
// key, Prefix itself, which is a document too, but merges know that
// its bytes depend on the array's structure.
type Form struct {
	Prefix string
	Sep    byte
	Rank   int
}

// Structure is the part of an array's metadata that its chunks depend on.
type Structure struct {
	// Key is equal for two documents if, and only if, a chunk written under
	// one reads the same under the other. The form of its key counts too.
	Key []byte
	// Grid is the number of chunks along each dimension.
	Grid []int64
}

// FieldConflict names a field of a document that both sides of a merge changed.
// The values are JSON, "" for absent.
type FieldConflict struct {
	Field              string
	Base, Ours, Theirs string
	// Same says that both sides changed it to the same value.
	Same bool
}

// NoPolicy knows no documents.
type NoPolicy struct{}

func (NoPolicy) Node(string) bool                             { return false }
func (NoPolicy) Forms(string, []byte) []Form                  { return nil }
func (NoPolicy) Array(string, []byte) bool                    { return false }
func (NoPolicy) Structure(string, []byte) (Structure, bool)   { return Structure{}, false }
func (NoPolicy) WithAttributes(string, []byte, []byte) []byte { return nil }
func (NoPolicy) Metadata(string) bool                         { return false }
func (NoPolicy) Copies(string, []byte) (copies, rest []byte)  { return nil, nil }
func (NoPolicy) Derived(string) bool                          { return false }
func (NoPolicy) Copying() []string                            { return nil }
func (NoPolicy) WithoutCopies(string, []byte, string) []byte  { return nil }
func (NoPolicy) MergeDocument(string, []byte, []byte, []byte, bool) ([]byte, []FieldConflict, error) {
	return nil, []FieldConflict{{}}, nil
}
