package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
)

// A client opens a copy of the index, which shows one moment and ends with the connection.
func TestCopyIndex(t *testing.T) {
	h, c := served(t, nil, nil)
	old, changed := random(1, 5000), random(2, 5000)
	put(t, h.db, map[string][]byte{"k": old})
	name, err := c.CopyIndex(bg, "")
	if err != nil {
		t.Fatal(err)
	}
	put(t, h.db, map[string][]byte{"k": changed})
	db, err := engine.Open(bg, h.db.Dir(), &engine.Options{IndexCopy: name})
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.At(bg, "main")
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, s, "k", old)
	if _, err := db.Begin(bg, "main"); !errors.Is(err, engine.ErrReadOnly) {
		t.Errorf("a session: %v", err)
	}
	if err := errors.Join(s.Close(), db.Close()); err != nil {
		t.Error(err)
	}
	if c.Gone(bg) {
		t.Error("the server is taken for ended")
	}
	c.Close()
	readers := filepath.Join(h.db.Dir(), "readers")
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(readers); errors.Is(err, os.ErrNotExist) {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("the copy is left")
		}
	}
}

// Clients have a bounded number of copies, and get another one when one has ended.
func TestCopyIndexLimit(t *testing.T) {
	h, c := served(t, nil, nil)
	other := join(t, h, nil)
	if _, err := other.CopyIndex(bg, ""); err != nil {
		t.Fatal(err)
	}
	for range maxCopies - 1 {
		if _, err := c.CopyIndex(bg, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.CopyIndex(bg, ""); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	other.Close()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		_, err := c.CopyIndex(bg, "")
		if err == nil {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

// A client learns that the server has ended.
func TestGone(t *testing.T) {
	h, c := served(t, nil, nil)
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	if !c.Gone(bg) {
		t.Error("the server is taken for alive")
	}
}
