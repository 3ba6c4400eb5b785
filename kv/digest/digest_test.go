package digest

import (
	"testing"
)

// The published BLAKE3 test vectors: inputs of i % 251 bytes.
func TestOf(t *testing.T) {
	for n, want := range map[int]string{
		0:    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9",
		1:    "2d3adedff11b61f14c886e35afa036736dcd87a7",
		1024: "42214739f095a406f3fc83deb889744ac00df831",
	} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i % 251)
		}
		if got := Of(b).String(); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
	if !(Sum{}).IsZero() || Of(nil).IsZero() {
		t.Error("only the zero Sum is zero")
	}
}
