package namespace

import (
	"context"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Values up to these sizes live in the pages themselves: reading them costs
// nothing more, and a pack record would be mostly header.
const (
	maxInline         = 512
	maxInlineDocument = 1024
)

// InlineLimit is larger for metadata documents, which every open reads.
func InlineLimit(key string) int {
	name := key[strings.LastIndexByte(key, '/')+1:]
	if strings.HasSuffix(name, ".json") || strings.HasPrefix(name, ".z") {
		return maxInlineDocument
	}
	return maxInline
}

// SameBytes reports whether two values stand for the same bytes: by content
// hash, wherever the bytes lie; for virtual values, the same reference.
func SameBytes(a, b *tree.Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind == b.Kind && a.Kind != tree.KindNative {
		return a.Equal(b)
	}
	return a.Kind != tree.KindVirtual && b.Kind != tree.KindVirtual && a.ContentSum() == b.ContentSum()
}

// makeDoc makes a value of a document's bytes; ok is false if they are too many
// to be inline and there is no Store.
func (s *Space) makeDoc(ctx context.Context, key string, doc []byte) (v tree.Value, ok bool, err error) {
	if len(doc) <= InlineLimit(key) {
		return tree.Value{Kind: tree.KindInline, Inline: doc}, true, nil
	}
	if s.Store == nil {
		return v, false, nil
	}
	v, err = s.Store(ctx, key, doc)
	return v, err == nil, err
}

// brief describes a value for people. It holds no secrets of URLs.
func brief(v *tree.Value) string {
	switch {
	case v == nil:
		return ""
	case v.Kind == tree.KindInline:
		return fmt.Sprintf("%d bytes", len(v.Inline))
	case v.Kind == tree.KindVirtual && v.Source.Whole:
		return redact.URL(v.Source.URL)
	case v.Kind == tree.KindVirtual:
		return fmt.Sprintf("%d bytes of %s", v.Length, redact.URL(v.Source.URL))
	}
	return fmt.Sprintf("%d bytes", v.Length)
}
