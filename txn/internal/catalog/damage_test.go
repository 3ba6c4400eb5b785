package catalog

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/kv"
)

func TestRecordsSurviveDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := &Commit{Parents: []CommitID{{1}, {2}}, Generation: 7, Author: "a", Message: "m", Time: time.Unix(5, 6).UTC(), Properties: map[string]string{"x": "y", "z": ""}}
	good := EncodeCommit(c)
	for range 20000 {
		b := slices.Clone(good[:rng.IntN(len(good)+1)])
		for range rng.IntN(4) {
			if len(b) > 0 {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
		}
		// Must end in an error or a value, never in a panic; a commit whose
		// bytes do not hash to its id is always an error.
		_, _ = Sessions.Decode(make([]byte, len(SessionID{})), b)
		_, _ = Moves.Decode(MoveKey{"heads/x", 1}.Bytes(), b)
		if _, err := DecodeCommit(CommitID{}, b); !errors.Is(err, kv.ErrCorrupt) {
			t.Fatalf("damaged commit: %v", err)
		}
	}
}
