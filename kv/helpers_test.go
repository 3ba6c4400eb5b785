package kv_test

import (
	"context"
	"iter"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// raw is a listing of any sorted strings, valid keys or not.
type raw []string

func (r raw) List(_ context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, key := range r {
			if strings.HasPrefix(key, opts.Prefix) && key > opts.After && !yield(key, nil) {
				return
			}
		}
	}
}
