package txn

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// FuzzRecords reads any bytes as each record of the index. What is accepted is
// written as bytes that are read as the same.
func FuzzRecords(f *testing.F) {
	at := time.Unix(1e9, 7).UTC()
	commit := &Commit{Parents: []CommitID{{1}, {2}}, Generation: 3, Time: at, Author: "a", Message: "é", Properties: map[string]string{"x": "1", "y": ""}}
	session := &sessionRecord{branch: "main", base: CommitID{1}, created: at, saved: at, label: "l", guards: []string{"a", "b"}}
	move := &RefMove{Ref: "heads/main", Seq: 4, Old: CommitID{1}, New: CommitID{2}, Time: at, Author: "a", Op: "commit"}
	pin := &Pin{Name: "p", Commit: CommitID{1}, Time: at, Note: "n"}
	info := pack.Info{ID: pack.ID{1}, End: 1 << 40, Sealed: true}
	f.Add([]byte(nil), commit.encode())
	f.Add([]byte(nil), session.encode())
	f.Add(reflogKey(move.Ref, move.Seq), move.encode())
	f.Add([]byte("p"), pin.encode())
	f.Add(info.ID[:], encodePackInfo(info))
	f.Fuzz(func(t *testing.T, key, b []byte) {
		again := func(what string, encoded []byte, decode func([]byte) ([]byte, error)) {
			if got, err := decode(encoded); err != nil || !bytes.Equal(got, encoded) {
				t.Fatalf("%s %x is written as %x, then as %x: %v", what, b, encoded, got, err)
			}
		}
		asCommit := func(b []byte) ([]byte, error) {
			c, err := decodeCommit(CommitID(digest.Of(b)), b)
			if err != nil {
				return nil, err
			}
			return c.encode(), nil
		}
		asSession := func(b []byte) ([]byte, error) {
			s, err := decodeSession(SessionID{}, b)
			if err != nil {
				return nil, err
			}
			return s.encode(), nil
		}
		asMove := func(b []byte) ([]byte, error) {
			m, err := decodeRefMove(key, b)
			if err == nil && !bytes.Equal(reflogKey(m.Ref, m.Seq), key) {
				t.Fatalf("reflog key %x is %+v", key, m)
			}
			return m.encode(), err
		}
		asPin := func(b []byte) ([]byte, error) {
			p, err := decodePin(string(key), b)
			return p.encode(), err
		}
		asInfo := func(b []byte) ([]byte, error) {
			i, err := decodePackInfo(key, b)
			return encodePackInfo(i), err
		}
		for what, decode := range map[string]func([]byte) ([]byte, error){"commit": asCommit, "session": asSession, "ref move": asMove, "pin": asPin, "pack": asInfo} {
			if encoded, err := decode(b); err == nil {
				again(what, encoded, decode)
			}
		}
		if _, err := decodeCommit(CommitID{}, b); err == nil {
			t.Fatalf("%x is taken for a commit with another name", b)
		}
	})
}

// FuzzNames reads any text as what names things in a database.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"zarrdb 1\n", "zarrdb 99", "00000000000000ff-00000001", "0123456789abcdef", "2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31 12:00", "1026-01-31", "",
		"Sat, 31 Jan 2026 12:00:00 +0100", "30d", "2 days ago", "now", "main~2^2@{", "a^2~~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseFormat([]byte(s)); err == nil && (n < 1 || n > Format) {
			t.Fatalf("%q is format %d", s, n)
		}
		if id, err := ParseSessionID(s); err == nil {
			if again, err := ParseSessionID(id.String()); err != nil || again != id {
				t.Fatalf("%q is session %v, then %v: %v", s, id, again, err)
			}
		}
		if _, ok := parseCheckpoint(s); ok && len(s) != len("0000000000000000-00000000") {
			t.Fatalf("%q is taken for a checkpoint", s)
		}
		if age, err := ParseAge(s); err == nil && (age < 0 || len(s) < 2) {
			t.Fatalf("%q is %v ago", s, age)
		}
		now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		when, err := parseWhen(s, now)
		age, noAge := ParseAge(s)
		at, noTime := ParseTime(s)
		if noAge == nil {
			at, noTime = now.Add(-age), nil
		}
		if (err == nil) != (noTime == nil) || err == nil && !when.Equal(at) {
			t.Fatalf("%q is %v (%v), not %v", s, when, err, at)
		}
		if base, steps, err := parseSteps(s); err == nil && (!strings.HasPrefix(s, base) || len(steps) > len(s)) {
			t.Fatalf("%q is %q and %v", s, base, steps)
		}
		if at, err := ParseTime(s); err == nil {
			// Local time once had seconds of distance from UTC, which no format says.
			if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
				return
			}
			if again, err := ParseTime(at.Format(time.RFC3339Nano)); err != nil || !again.Equal(at) {
				t.Fatalf("%q is %v, then %v: %v", s, at, again, err)
			}
		}
	})
}
