package transfer

import (
	"testing"
)

// TestPackReaderForgets bounds what a long import holds.
func TestPackReaderForgets(t *testing.T) {
	came := make(chan struct{})
	close(came)
	p := &packReader{}
	for i := range uint64(100) {
		p.pieces = append(p.pieces, &packPiece{from: i * readBytes / 2, to: (i + 1) * readBytes / 2, came: came, data: [][]byte{{1}}})
	}
	for i := range p.pieces {
		p.ask(i)
		for k, piece := range p.pieces {
			if held := piece.data != nil; held != (k > i-3) {
				t.Fatalf("piece %d beside %d: %v", k, i, held)
			}
		}
	}
}
