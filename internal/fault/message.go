package fault

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// packages matches the names that errors of this module begin with. They help
// programmers, not people. After the name of a metadata document the same word
// names a member, and stays: ".zarray: dtype: missing".
var packages = regexp.MustCompile(`((?:\.zarray|zarr\.json|meta): (?:dtype|codecs):)|(^|[ (])(?:kv|dirkv|zipkv|httpkv|s3kv|gcskv|remote|index|pack|tree|txn|zarr|cf|dtype|codecs|refs|parquet|formats|engine|zurl|serve|auth|local|wire): `)

// OneLine makes one line of a joined or wrapped error, for people: without the names of
// packages.
func OneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	s := strings.Join(slices.Compact(lines), "; ") // a writer's error comes again when it is flushed
	s = clipWords(s)
	for again := ""; again != s; {
		again, s = s, packages.ReplaceAllString(s, "$1$2")
	}
	return s
}

// Bounds of a word and of a whole message. Errors quote arguments, paths
// and documents, which can be long.
const (
	maxWord    = 1000
	maxMessage = 8000
)

// clipWords shortens long words of a message first, so that the text around them
// stays, and then the whole message.
func clipWords(s string) string {
	words := strings.Split(s, " ")
	for i, word := range words {
		if len(word) > maxWord {
			const end = maxWord / 4
			words[i] = fmt.Sprintf("%s…[%d bytes]…%s", strings.ToValidUTF8(word[:end], ""), len(word), strings.ToValidUTF8(word[len(word)-end:], ""))
		}
	}
	s = strings.Join(words, " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}
