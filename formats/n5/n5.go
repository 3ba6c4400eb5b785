package n5

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

const scheme = "n5"

// Format returns N5 for the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: scheme, Directory: true, Open: open, Detect: detect, Files: []string{attributesFile},
		Codecs: []codecs.Entry{
			{V3: []string{lz4Codec}, Kind: codecs.BytesToBytes, Parse: parseLZ4Block},
			{V3: []string{stringCodec}, Kind: codecs.ArrayToBytes, Parse: parseString},
			formats.RefusedCodec(scheme),
		},
	}
}

// open opens a container, or a group or dataset of one by itself.
func open(ctx context.Context, base formats.Base, _ formats.Options) (refs.Set, error) {
	s := newSet(base.Files)
	_, err := s.node(ctx, "")
	if errors.Is(err, kv.ErrNotFound) && s.list == nil {
		return s, nil // a server that is not listed, and a root without attributes
	}
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: there is no %s, and nothing else", formats.ErrFormat, attributesFile)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// detect reports whether a directory is the root of a container or a dataset.
func detect(e formats.Evidence) bool {
	if e.File == nil {
		return false
	}
	names := memberNames(e.File(attributesFile))
	return names[memberVersion] || names[memberDimensions] && names[memberBlockSize] && names[memberDataType]
}

// memberNames returns the names of the members of an object of which the end may be
// missing.
func memberNames(head []byte) map[string]bool {
	dec := json.NewDecoder(bytes.NewReader(head))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	names := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			break
		}
		names[name] = true
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
	}
	return names
}
