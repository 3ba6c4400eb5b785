package depot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// ErrFormat means that a newer version wrote the manifest.
var ErrFormat = errors.New("depot: unknown format")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", fault.New("depot: damaged", kv.ErrCorrupt, fault.ErrCorrupt), fmt.Errorf(format, args...))
}

// ID names a page or a commit record: the first 20 bytes of the BLAKE3 hash of its bytes.
type ID digest.Sum

// NameOf returns the name of bytes.
func NameOf(b []byte) ID { return ID(digest.Of(b)) }

// String returns 40 hexadecimal digits.
func (id ID) String() string { return digest.Sum(id).String() }

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText implements [encoding.TextMarshaler].
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (id *ID) UnmarshalText(b []byte) error {
	if _, err := hex.Decode(id[:], b[:min(len(b), 2*len(id))]); err != nil || len(b) != 2*len(id) {
		return fmt.Errorf("%.50q is not a name", b)
	}
	return nil
}

// Name is the name of a bundle or a segment. No two objects ever have the same name.
type Name struct {
	// Generation is the generation of the manifest at which the push began.
	Generation uint32
	// Push is the random number of the push.
	Push uint64
	// Index counts what the push uploads.
	Index uint32
}

func (n Name) String() string { return fmt.Sprintf("%08x-%016x-%04x", n.Generation, n.Push, n.Index) }

// Bundle returns the key of a bundle.
func (n Name) Bundle() string { return "b/" + n.String() }

// Segment returns the key of a segment.
func (n Name) Segment() string { return "s/" + n.String() }

const nameSize = 16

func (n Name) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, n.Generation)
	b = binary.LittleEndian.AppendUint64(b, n.Push)
	return binary.LittleEndian.AppendUint32(b, n.Index)
}

func decodeName(b []byte) Name {
	return Name{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:]), binary.LittleEndian.Uint32(b[12:])}
}

// ParseName is the inverse of [Name.String].
func ParseName(s string) (n Name, ok bool) {
	if len(s) < 30 {
		return n, false
	}
	g, err1 := strconv.ParseUint(s[:8], 16, 32)
	push, err2 := strconv.ParseUint(s[9:25], 16, 64)
	i, err3 := strconv.ParseUint(s[26:], 16, 32)
	n = Name{uint32(g), push, uint32(i)}
	return n, errors.Join(err1, err2, err3) == nil && n.String() == s
}

// IsKey reports whether a key is that of an object of a depot.
func IsKey(key string) bool {
	name, is := strings.CutPrefix(key, "b/")
	if !is {
		name, is = strings.CutPrefix(key, "s/")
	}
	_, ok := ParseName(name)
	return is && ok || key == manifestKey
}

// MarshalText implements [encoding.TextMarshaler].
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (n *Name) UnmarshalText(b []byte) (err error) {
	var ok bool
	if *n, ok = ParseName(string(b)); !ok {
		return fmt.Errorf("%.50q does not name an object", b)
	}
	return nil
}

// Bounds of a manifest and of what it lists.
const (
	maxManifest = 16 << 20
	maxRefs     = 20_000
	maxRefName  = 1 << 10
	maxBundles  = 100_000
	maxBundle   = 64 << 20
	// maxIndexes bounds the bytes of all indexes, which a program has in memory.
	maxIndexes = 1 << 30
	maxTimes   = 64
	// keptPushes is the number of pushes that a manifest remembers.
	keptPushes = 256
)

// Manifest is the state of a depot at one moment. It is not changed once it was read.
type Manifest struct {
	// ID tells depots apart: 32 hexadecimal digits.
	ID string `json:"id"`
	// Generation is 1 at first, and one more with each replacement.
	Generation uint64 `json:"generation"`
	// Reads and Writes name what a program must know to read, and to write.
	Reads  []string `json:"reads,omitempty"`
	Writes []string `json:"writes,omitempty"`
	// Refs are the commits of branches and tags, by the names that the caller gives them.
	Refs map[string]ID `json:"refs"`
	// Bundles are listed newest first.
	Bundles []BundleInfo `json:"bundles"`
	// Pushes are the numbers of the last pushes and merges, newest first.
	Pushes []Number `json:"pushes"`
	// Floor is the least generation at which a push may have begun that still publishes.
	Floor uint64 `json:"floor"`
	// Drops counts the collections that took something from the lists.
	Drops uint64 `json:"drops"`
	// Times has generations with their times, in seconds since 1970 by the clock of the store.
	Times [][2]int64 `json:"times"`
}

// Number is the random number of a push.
type Number uint64

// MarshalText implements [encoding.TextMarshaler].
func (n Number) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(n)), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (n *Number) UnmarshalText(b []byte) error {
	var raw [8]byte
	if len(b) != 16 {
		return fmt.Errorf("%.50q is not the number of a push", b)
	}
	_, err := hex.Decode(raw[:], b)
	*n = Number(binary.BigEndian.Uint64(raw[:]))
	return err
}

// BundleInfo is the entry of a bundle in a manifest.
type BundleInfo struct {
	Name Name `json:"name"`
	// Size is the length of the object. Its first Hot bytes have the pages that most readers
	// need. The index begins at Index and ends where the footer begins; Sum is its name.
	Size  uint64 `json:"size"`
	Hot   uint64 `json:"hot"`
	Index uint64 `json:"index"`
	Sum   ID     `json:"sum"`
}

// Has reports whether a push is among the last ones.
func (m *Manifest) Has(push Number) bool { return slices.Contains(m.Pushes, push) }

const manifestMagic = "zarrdb remote "

// encode returns the bytes of the object.
func (m *Manifest) encode() ([]byte, error) {
	rest, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, "%s1 %v\n", manifestMagic, NameOf(rest))
	if b = append(b, rest...); len(b) > maxManifest {
		return nil, fmt.Errorf("depot: the manifest would have %d bytes, at most %d are allowed", len(b), maxManifest)
	}
	return b, m.check()
}

// ParseManifest reads the bytes of a manifest. The error is [ErrFormat] if a newer version
// wrote it, else kv.ErrCorrupt.
func ParseManifest(b []byte) (*Manifest, error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	text, magic := strings.CutPrefix(string(line[:min(len(line), 100)]), manifestMagic)
	version, sum, ok2 := strings.Cut(text, " ")
	switch {
	case !ok || !magic || !ok2 || len(b) > maxManifest:
		return nil, corrupt("not a manifest")
	case version != "1":
		return nil, fmt.Errorf("%w: manifest of version %.20q, this program knows 1", ErrFormat, version)
	case sum != NameOf(rest).String():
		return nil, corrupt("the manifest does not have its checksum")
	case bytes.Count(rest, []byte("{")) > maxBundles:
		return nil, corrupt("the manifest lists too much")
	}
	m := &Manifest{}
	if err := json.Unmarshal(rest, m); err != nil {
		return nil, corrupt("manifest: %w", err)
	}
	for _, flag := range m.Reads {
		return nil, fmt.Errorf("%w: reading needs %.40q", ErrFormat, flag)
	}
	if err := m.check(); err != nil {
		return nil, corrupt("manifest: %w", err)
	}
	return m, nil
}

// check compares a manifest with the bounds.
func (m *Manifest) check() error {
	if raw, err := hex.DecodeString(m.ID); err != nil || len(raw) != 16 {
		return fmt.Errorf("%.50q is not an identity", m.ID)
	}
	switch {
	case m.Generation == 0 || m.Generation >= 1<<32 || m.Floor > m.Generation:
		return fmt.Errorf("generation %d, floor %d", m.Generation, m.Floor)
	case len(m.Refs) > maxRefs:
		return fmt.Errorf("%d refs, at most %d are allowed", len(m.Refs), maxRefs)
	case len(m.Pushes) > keptPushes || len(m.Times) > maxTimes:
		return fmt.Errorf("%d pushes, %d times", len(m.Pushes), len(m.Times))
	}
	for ref, id := range m.Refs {
		if ref == "" || len(ref) > maxRefName || id.IsZero() || !utf8.ValidString(ref) || strings.ContainsFunc(ref, unicode.IsControl) {
			return fmt.Errorf("ref %.50q to %v", ref, id)
		}
	}
	seen, indexes := make(map[Name]bool, len(m.Bundles)), uint64(0)
	for _, b := range m.Bundles {
		if seen[b.Name] || b.Size > maxBundle || b.Index < headerSize || b.Index > b.Size || b.Size-b.Index < footerSize+countsSize || b.Hot > b.Index {
			return fmt.Errorf("bundle %v: %d bytes, index at %d, hot to %d", b.Name, b.Size, b.Index, b.Hot)
		}
		seen[b.Name] = true
		indexes += b.Size - b.Index
	}
	if indexes > maxIndexes {
		return fmt.Errorf("indexes of %d bytes, at most %d are allowed", indexes, maxIndexes)
	}
	if !slices.IsSortedFunc(m.Times, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) }) {
		return errors.New("times are out of order")
	}
	return nil
}

// next returns a copy that is the next generation, published by a push.
func (m *Manifest) next(push Number, now int64) *Manifest {
	n := *m
	n.Generation++
	n.Refs = maps.Clone(m.Refs)
	if n.Refs == nil {
		n.Refs = map[string]ID{}
	}
	n.Pushes = append([]Number{push}, m.Pushes[:min(len(m.Pushes), keptPushes-1)]...)
	if last := len(m.Times) - 1; now > 0 && (last < 0 || now >= m.Times[last][1]+3600) {
		n.Times = append(slices.Clone(m.Times[max(0, len(m.Times)-maxTimes+1):]), [2]int64{int64(n.Generation), now})
	}
	return &n
}

// replace returns bundles with the new ones in front, or in the place of the bundles whose contents they took
// along: bundles that were newer stay in front.
func replace(bundles, by []BundleInfo, gone []Name) []BundleInfo {
	taken := func(b BundleInfo) bool { return slices.Contains(gone, b.Name) }
	return slices.DeleteFunc(slices.Insert(slices.Clone(bundles), max(0, slices.IndexFunc(bundles, taken)), by...), taken)
}
