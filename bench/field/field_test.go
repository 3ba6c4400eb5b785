package field

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// Some values and the digest of the first planes are checked always, the whole
// field where there is time.
func TestField(t *testing.T) {
	for _, c := range []struct {
		t, y, x int
		want    float32
	}{{0, 0, 0, 12.001}, {255, 1023, 1023, 11.939}} {
		if got := at(c.t, c.y, c.x); got != c.want {
			t.Errorf("value at %d, %d, %d is %v, want %v", c.t, c.y, c.x, got, c.want)
		}
	}
	if testing.Short() {
		t.Skip("the digest of the whole field takes seconds")
	}
	h := sha256.New()
	plane := make([]byte, 4*Shape[1]*Shape[2])
	for i := range Shape[0] {
		Fill(plane, i)
		h.Write(plane)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != SHA256 {
		t.Errorf("the field hashes to %s, want %s", got, SHA256)
	}
}
