package catalog

import (
	"bytes"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// FuzzRecords reads any bytes as each record of the index. What is accepted is
// written as bytes that are read as the same.
func FuzzRecords(f *testing.F) {
	at := time.Unix(1e9, 7).UTC()
	commit := &Commit{Parents: []CommitID{{1}, {2}}, Generation: 3, Time: at, Author: "a", Message: "é", Properties: map[string]string{"x": "1", "y": ""}}
	session := &Session{ID: SessionID{1}, Branch: "main", Base: CommitID{1}, Created: at, Saved: at, Label: "l", Guards: []string{"a", "b"}}
	move := RefMove{Ref: "heads/main", Seq: 4, Old: CommitID{1}, New: CommitID{2}, Time: at, Author: "a", Op: "commit"}
	info := pack.Info{ID: pack.ID{1}, End: 1 << 40, Sealed: true}
	f.Add([]byte(nil), EncodeCommit(commit))
	add := func(key, value []byte) { f.Add(key, value) }
	add(Sessions.encode(session))
	fork := *session
	fork.Start = &tree.Root{}
	add(Sessions.encode(&fork))
	add(Moves.encode(move))
	add(Packs.encode(info))
	add(Holes.encode(Hole{Address: pack.Address{Pack: info.ID, Offset: 1 << 33, Length: 300}, Sum: digest.Sum{2}}))
	add(Refs.encode(Ref{"heads/main", CommitID{1}}))
	add(Expired.encode(Expiry{CommitID{1}, at}))
	f.Add([]byte(CommitID{1}.String()), []byte(SessionID{2}.String()))
	f.Fuzz(func(t *testing.T, key, b []byte) {
		var id CommitID
		if err := id.UnmarshalText(key); err == nil && !bytes.EqualFold([]byte(id.String()), key) {
			t.Fatalf("commit id %s is read as %v", key, id)
		}
		var session SessionID
		if err := session.UnmarshalText(b); err == nil && !bytes.EqualFold([]byte(session.String()), b) {
			t.Fatalf("session id %s is read as %v", b, session)
		}
		if c, err := DecodeCommit(CommitID(digest.Of(b)), b); err == nil {
			record := EncodeCommit(c)
			again, err := DecodeCommit(CommitID(digest.Of(record)), record)
			if err != nil || !bytes.Equal(EncodeCommit(again), record) {
				t.Fatalf("commit %x is written as %x: %v", b, record, err)
			}
		}
		if _, err := DecodeCommit(CommitID{}, b); err == nil {
			t.Fatalf("%x is taken for a commit with another name", b)
		}
		checkTable(t, &Sessions, key, b)
		checkTable(t, &Moves, key, b)
		checkTable(t, &Packs, key, b)
		checkTable(t, &Refs, key, b)
		checkTable(t, &Holes, key, b)
		if len(key) == len(CommitID{}) {
			checkTable(t, &Expired, key, b)
		}
	})
}

// checkTable decodes a record. If that succeeds, the record must be encoded under
// the same key, as bytes that mean the same.
func checkTable[K, V any](t *testing.T, table *Table[K, V], key, b []byte) {
	v, err := table.Decode(key, b)
	if err != nil {
		return
	}
	newKey, record := table.encode(v)
	again, err := table.Decode(newKey, record)
	if err != nil || !bytes.Equal(newKey, key) {
		t.Fatalf("record %x: %x is %+v, written as %x: %x, %v", key, b, v, newKey, record, err)
	}
	if _, same := table.encode(again); !bytes.Equal(same, record) {
		t.Fatalf("record %x: %x is %+v, written as %x, then as %x", key, b, v, record, same)
	}
}

// FuzzEntries reads any bytes as the log of a session. What is accepted is written as bytes
// that are read as the same.
func FuzzEntries(f *testing.F) {
	start := tree.Root{}
	at := time.Unix(1e9, 7).UTC()
	var log []byte
	for _, e := range []*Entry{
		{Kind: EntryBegin, Stored: digest.Sum{1}, Session: &Session{ID: SessionID{1}, Branch: "main", Base: CommitID{1}, Created: at, Saved: at, Start: &start}},
		{Kind: EntryPut, Key: "k", Value: tree.Value{Kind: tree.KindInline, Inline: []byte("v")}},
		{Kind: EntryPut, Key: "k", Value: tree.Value{Kind: tree.KindNative, Sum: digest.Sum{2}, Pack: tree.PackID{3}, Offset: 4, Length: 5}},
		{Kind: EntryPut, Key: "k", Value: tree.Value{Kind: tree.KindVirtual, Source: tree.Source{URL: "file:///\xff", Validator: "v", Whole: true}, Offset: 4}},
		{Kind: EntryDelete, Key: "k"}, {Kind: EntryPrefix, Key: "d/"}, {Kind: EntryMove, Key: "a", To: "b"},
		{Kind: EntryGuard, Paths: []string{"a", ""}}, {Kind: EntryCommit, Commit: CommitID{9}},
	} {
		log = AppendEntry(log, e)
	}
	f.Add(log)
	f.Add(log[:len(log)-1])
	damaged := bytes.Clone(log)
	damaged[20]++
	f.Add(damaged)
	f.Fuzz(func(t *testing.T, b []byte) {
		// Bytes of the fuzzer have no checksum: they are taken for one body, too.
		if len(b) > 0 {
			if e, err := decodeEntry(b); err == nil {
				b = AppendEntry(nil, e)
			}
		}
		var again []byte
		for e, err := range Entries(b) {
			if err != nil {
				return
			}
			if e.Kind != EntryDamaged { // is not stored
				again = AppendEntry(again, e)
			}
		}
		n := 0
		for e, err := range Entries(again) {
			must.Do(t, err)
			if n += len(AppendEntry(nil, e)); !bytes.Equal(AppendEntry(nil, e), again[n-len(AppendEntry(nil, e)):n]) {
				t.Fatalf("%+v is written in another way", e)
			}
		}
		if n != len(again) {
			t.Fatalf("%d bytes of %d are read again", n, len(again))
		}
	})
}
