package scratch

import "testing"

// TestGet checks the room of new and of used buffers, within the pooled classes
// and beyond.
func TestGet(t *testing.T) {
	for _, n := range []int64{0, 1, 1 << minClass, 1<<minClass + 1, 1<<maxClass + 1} {
		for range 3 {
			s := Get(n)
			if len(s.B) != 0 || int64(cap(s.B)) < n {
				t.Fatalf("Get(%d) has %d of %d bytes", n, len(s.B), cap(s.B))
			}
			s.B = append(s.B, 1)
			s.Put()
		}
	}
	// A buffer that grew to between two classes serves the smaller one.
	s := &Buffer{B: make([]byte, 0, 1<<(minClass+1)-1)}
	s.Put()
	if s := Get(1 << (minClass + 1)); cap(s.B) < 1<<(minClass+1) {
		t.Errorf("a buffer of %d bytes for %d", cap(s.B), 1<<(minClass+1))
	}
	var none *Buffer
	none.Put()
}

func TestGrow(t *testing.T) {
	if b := Grow(nil, 100); len(b) != 0 || cap(b) != 100 {
		t.Errorf("%d of %d bytes for 100", len(b), cap(b))
	}
	b := make([]byte, 3, 10)
	b[0] = 7
	if got := Grow(b, 7); &got[0] != &b[0] {
		t.Error("a buffer with room is copied")
	}
	if got := Grow(b, 8); len(got) != 3 || cap(got) < 11 || got[0] != 7 {
		t.Errorf("%d of %d bytes, beginning with %d", len(got), cap(got), got[0])
	}
	// A size from metadata is trusted as far as the encoded bytes can decode to it.
	if got := Room(nil, 1<<40, 10); cap(got) >= 1<<30 {
		t.Errorf("%d bytes for 10", cap(got))
	}
	if got := Room(nil, 1<<20, 10); cap(got) < 1<<20 {
		t.Errorf("%d bytes for %d", cap(got), 1<<20)
	}
}
