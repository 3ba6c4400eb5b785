package codecs_test

import (
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
)

// invert is a codec that flips every bit.
type invert struct{}

func (invert) Config() json.RawMessage { return nil }

func (invert) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) { return invert{}, in, nil }

func (invert) Encode(dst, src []byte) ([]byte, error) {
	for _, b := range src {
		dst = append(dst, ^b)
	}
	return dst, nil
}

func (invert) Decode(dst, src []byte) ([]byte, error) { return invert{}.Encode(dst, src) }
