package away

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
)

// verified notes the payloads that were compared with their hashes, so that each is compared once. What is noted of [Dir] stays
// from one process to the next, in remotes/…/cache/verified:
//
//	key 16 · name of the list of the files of [Dir], with sizes and times 20 · marks, 8 bytes each
//
// It counts as long as no file of [Dir] changes and nothing is fetched: checksums then find what the disk has lost, as in packs/.
// The key is random, so that a remote cannot choose payloads that have one mark.
type verified struct {
	away, own [16]byte // keys of payloads in [Dir] and in packs/
	marks     [1 << 16]atomic.Uint64
	loaded    bool // of another process
	fetched   sync.Once
	fresh     atomic.Bool // the file has not all marks
}

// mark returns what says that a payload was compared with its hash, and where that is noted. With own, the payload is in packs/.
func (v *verified) mark(own bool, at pack.Address, sum digest.Sum) (uint64, *atomic.Uint64) {
	key := &v.away
	if own {
		key = &v.own
	}
	var room [80]byte
	b := append(append(room[:0], key[:]...), at.Pack[:]...)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, at.Offset), at.Length)
	name := digest.Of(append(b, sum[:]...))
	mark := binary.LittleEndian.Uint64(name[:]) | 1
	return mark, &v.marks[mark>>48]
}

// Known reports whether a payload needs no comparison with its hash, or the hash is not known.
func (v *verified) Known(own bool, at pack.Address, sum digest.Sum) bool {
	if sum == (digest.Sum{}) {
		return true
	}
	mark, slot := v.mark(own, at, sum)
	return slot.Load() == mark
}

// Right compares the whole bytes of a payload with its hash, once: two copies of one directory may have other payloads at
// one address, and the remote may have those of the other one.
func (v *verified) Right(own bool, at pack.Address, b []byte, sum digest.Sum) error {
	if v.Known(own, at, sum) {
		return nil
	}
	if got := digest.Of(b); got != sum {
		return wrongError{&pack.CorruptError{Pack: at.Pack, Offset: at.Offset, Length: at.Length, Reason: fmt.Sprintf("the payload hashes to %v, not %v", got, sum)}}
	}
	mark, slot := v.mark(own, at, sum)
	slot.Store(mark)
	v.fresh.Store(true)
	return nil
}

// forget says that payloads were removed: others may come to their addresses.
func (v *verified) forget() {
	for i := range v.marks {
		v.marks[i].Store(0)
	}
	v.fresh.Store(true)
}

// Fetching says that payloads will come, perhaps in the place of some that were lost since another process compared them.
func (v *verified) Fetching() {
	v.fetched.Do(func() {
		if v.loaded {
			v.forget()
		}
	})
}

// begin makes keys.
func (v *verified) begin() {
	_, _ = rand.Read(v.away[:]) // it never fails
	_, _ = rand.Read(v.own[:])
}

// load reads what the last process has noted. dir is the database.
func (v *verified) load(at Place, dir string) {
	b, err := os.ReadFile(filepath.Join(bucket.Dir(index.DefaultFS, dir, at.URL), "cache", "verified"))
	head := len(v.away) + len(digest.Sum{})
	if err != nil || len(b) != head+8*len(v.marks) || digest.Sum(b[len(v.away):head]) != awayFiles(dir) {
		return
	}
	v.away = [16]byte(b)
	for i := range v.marks {
		v.marks[i].Store(binary.LittleEndian.Uint64(b[head+8*i:]))
	}
	v.loaded = true
}

// save is for the next process. What is lost is compared anew.
func (v *verified) save(at Place, dir string) {
	if !v.fresh.Load() {
		return
	}
	files := awayFiles(dir)
	b := append(v.away[:], files[:]...)
	for i := range v.marks {
		b = binary.LittleEndian.AppendUint64(b, v.marks[i].Load())
	}
	cache := filepath.Join(bucket.Dir(index.DefaultFS, dir, at.URL), "cache")
	_ = os.MkdirAll(cache, 0o777)
	_ = index.ReplaceSmall(index.DefaultFS, cache, "verified", b)
}

// awayFiles names the files of [Dir] as they are.
func awayFiles(dir string) digest.Sum {
	list, _ := os.ReadDir(filepath.Join(dir, Dir))
	var text []byte
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			return digest.Sum{}
		}
		text = fmt.Appendf(text, "%s %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return digest.Of(text)
}
