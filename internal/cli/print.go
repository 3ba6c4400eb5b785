package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/internal/report"
)

// printJSON prints one indented JSON value.
func printJSON(cmd *cobra.Command, v any) error { return encode(cmd, v, "  ") }

// printJSONLine prints one JSON value on one line.
func printJSONLine(cmd *cobra.Command, v any) error { return encode(cmd, v, "") }

// printJSONLines prints the values of a report, up to its first error.
func printJSONLines[T any](cmd *cobra.Command, values iter.Seq2[T, error]) error {
	for v, err := range values {
		if err == nil {
			err = printJSONLine(cmd, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func encode(cmd *cobra.Command, v any, indent string) error {
	text, err := report.JSON(v, indent)
	if err == nil {
		_, err = io.WriteString(cmd.OutOrStdout(), text)
	}
	return err
}

// flatJSON is a JSON value on one line.
func flatJSON(raw json.RawMessage) string {
	var flat bytes.Buffer
	if json.Compact(&flat, raw) != nil { // a bare NaN
		return strings.Join(strings.Fields(string(raw)), " ")
	}
	return flat.String()
}

// printIndented prints a text of several lines.
func printIndented(cmd *cobra.Command, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\r\n"), "\n") {
		say(cmd, "    %s", shown{strings.TrimSuffix(line, "\r"), "\t"})
	}
}

// sorted ranges over a map by key.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// count formats a number of things.
func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// size prints a number of bytes for people.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, u := float64(n)/1024, 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[u])
}
