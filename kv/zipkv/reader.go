package zipkv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

// maxMemberBytes bounds the bytes of one compressed member in memory; a larger read is an
// error that names the bound. Stored members are not bounded: they are no larger than the
// archive.
const maxMemberBytes = 256 << 20

// Reader is an open archive as a view. Safe for concurrent use.
type Reader struct {
	archive   kv.Value
	maxMember int64 // maxMemberBytes; tests have less

	names   string   // of all members, in the order of the directory
	members []member // ordered by name
	refused []string
	dataEnd int64 // offset of the directory, where members end

	tail  kv.Value // the archive with its last bytes in memory, during Open
	ahead sync.Once
	held  *gather.Memory // of members that are read ahead
}

var (
	_ kv.ReadLister = (*Reader)(nil)
	_ kv.Locator    = (*Reader)(nil)
	_ kv.Gatherer   = (*Reader)(nil)
	_ kv.Spacer     = (*Reader)(nil)
)

// IsZip reports whether a file with this beginning is an archive.
func IsZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// Open reads the directory of an archive; ctx is for that alone. The archive
// must stay readable as long as the view is used. It is read in ranges: its last
// 64 KiB first, then the rest of the directory, then members on demand. If the
// archive is a [kv.Spacer], as on a server, [kv.Gather] reads members together.
//
// Errors: errFormat if it is no archive, kv.ErrCorrupt if it is broken.
func Open(ctx context.Context, archive kv.Value) (*Reader, error) {
	r := &Reader{archive: archive, maxMember: maxMemberBytes}
	if err := r.readIndex(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Len is the number of keys.
func (r *Reader) Len() int { return len(r.members) }

// Refused returns the names of members that are no keys because their names are
// invalid or could lead out of a directory; at most the first 100. The caller
// must not change the slice.
func (r *Reader) Refused() []string { return r.refused }

func (r *Reader) name(m *member) string { return r.names[m.name:][:m.len] }

// search returns the index of the first member from key on.
func (r *Reader) search(key string) int {
	return sort.Search(len(r.members), func(i int) bool { return r.name(&r.members[i]) >= key })
}

// Get implements kv.Reader.
func (r *Reader) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := r.Locate(ctx, key)
	if err != nil {
		return nil, err
	}
	if p, ok := v.(*packedValue); ok {
		return p.get(ctx, rng) // decompressed into memory that the caller may keep
	}
	return kv.ReadValue(ctx, v, rng)
}

// Locate implements kv.Locator. The local header is read once for each member.
func (r *Reader) Locate(ctx context.Context, key string) (kv.Value, error) {
	m, err := r.member(ctx, key)
	if err != nil {
		return nil, err
	}
	at, err := r.dataAt(ctx, r.archive, m)
	if err != nil {
		return nil, err
	}
	return r.value(m, at, r.archive)
}

// member finds the readable member of a key.
func (r *Reader) member(ctx context.Context, key string) (*member, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i := r.search(key)
	if i == len(r.members) || r.name(&r.members[i]) != key {
		if reason := refused(key); reason != "" {
			return nil, fmt.Errorf("zipkv: %w: %q: %s", kv.ErrInvalidKey, key, reason)
		}
		return nil, kv.ErrNotFound
	}
	m := &r.members[i]
	if err := checkMethod(m); err != nil {
		return nil, fmt.Errorf("%w of member %q", err, key)
	}
	return m, nil
}

// value returns a member whose bytes begin at an offset of the archive, or
// [unknown].
func (r *Reader) value(m *member, at int64, archive kv.Value) (kv.Value, error) {
	d := data{r, m, archive, at}
	if m.method == methodStore {
		if m.packed != m.size {
			return nil, corrupt("stored member %q of %d bytes has %d", r.name(m), m.size, m.packed)
		}
		return &storedValue{d}, nil
	}
	if m.method == methodDeflate && m.size/maxInflate > m.packed {
		return nil, corrupt("member %q declares %d bytes, more than its %d can hold", r.name(m), m.size, m.packed)
	}
	return &packedValue{data: d}, nil
}

// maxInflate is the highest compression ratio of deflate: 258 bytes for every
// two bits.
const maxInflate = 1032

// checkMethod returns an error if the method of a member is not supported.
func checkMethod(m *member) error {
	switch {
	case m.flags&(flagEncrypted|flagMasked) != 0 || m.method == methodAES:
		return fmt.Errorf("%w: encryption", errMethod)
	case m.method != methodStore && decoders[m.method] == nil:
		return fmt.Errorf("%w: compression method %d", errMethod, m.method)
	}
	return nil
}

// dataAt returns the offset of a member's bytes. It reads the local header from
// archive.
func (r *Reader) dataAt(ctx context.Context, archive kv.Value, m *member) (int64, error) {
	name := r.name(m)
	if m.offset == outside {
		return 0, corrupt("member %q does not lie in the archive", name)
	}
	head := atomic.LoadUint32(&m.head)
	if n := head &^ rawName; n != 0 {
		return m.offset + int64(n), nil
	}
	var n int64
	err := archive.View(ctx, kv.Span(m.offset, min(lenLocal+int64(m.rawLen), r.dataEnd-m.offset)), func(b []byte) error {
		if sig := le.Uint32(b); sig != sigLocal {
			return corrupt("local header of %q with signature %#x", name, sig)
		}
		if le.Uint16(b[26:]) != m.rawLen || head&rawName != 0 && string(b[lenLocal:]) != name {
			return corrupt("local header of %q has another name", name)
		}
		if method := le.Uint16(b[8:]); method != m.method {
			return corrupt("local header of %q has method %d, the directory %d", name, method, m.method)
		}
		if le.Uint16(b[6:])&flagEncrypted != 0 {
			return fmt.Errorf("%w: encryption of member %q", errMethod, name)
		}
		n = lenLocal + int64(m.rawLen) + int64(le.Uint16(b[28:]))
		return nil
	})
	if err != nil {
		return 0, err
	}
	if m.offset+n > r.dataEnd-m.packed {
		return 0, corrupt("member %q of %d bytes at %d reaches into the directory at %d", name, m.packed, m.offset+n, r.dataEnd)
	}
	atomic.StoreUint32(&m.head, head|uint32(n))
	return m.offset + n, nil
}

// List implements kv.Lister.
func (r *Reader) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		i := r.search(max(opts.Prefix, opts.After))
		for n := 0; ; n++ {
			if n%checkEvery == 0 {
				if err := ctx.Err(); err != nil {
					yield("", err)
					return
				}
			}
			if i == len(r.members) {
				return
			}
			key := r.name(&r.members[i])
			i++
			if key <= opts.After && opts.After != "" {
				continue
			}
			if !strings.HasPrefix(key, opts.Prefix) || !yield(key, nil) {
				return
			}
		}
	}
}

// checkEvery is the number of keys yielded between two checks of the context.
const checkEvery = 256

// id derives the identity of a member from the identity of the archive.
func (r *Reader) id(m *member) kv.ID {
	archive := r.archive.ID()
	if archive == (kv.ID{}) {
		return kv.ID{}
	}
	b := append([]byte("zip member\x00"), archive[:]...)
	for _, n := range []int64{m.offset, m.packed, m.size, int64(m.crc), int64(m.method)} {
		b = le.AppendUint64(b, uint64(n))
	}
	sum := sha256.Sum256(b)
	return kv.ID(sum[:len(kv.ID{})])
}

// errTooLarge returns the error of a read that exceeds MaxMemberBytes.
func (r *Reader) errTooLarge(m *member, n int64) error {
	return fmt.Errorf("zipkv: %d bytes of compressed member %q: over the limit of %d in memory", n, r.name(m), r.maxMember)
}
