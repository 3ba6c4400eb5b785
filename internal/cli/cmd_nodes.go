package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/zarr"
)

func lsCmd() *cobra.Command {
	var long, asJSON bool
	cmd := new(sourceFlags).reads(&cobra.Command{
		Use:   "ls TARGET",
		Short: "List the members of a group",
		Long: `List what lies right below a group: arrays by their names, groups (and plain
directories, in which there is something else) with a slash behind. An array that
cannot be read is listed with the reason.`,
		Example: `  zarrdb ls weather.zdb
  zarrdb ls -l weather.zdb@v1.0:surface`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		return printMembers(cmd, report.Members(cmd.Context(), s, false), long, asJSON)
	})
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show data types, shapes and chunks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, as info --json prints")
	return cmd
}

// printMembers prints members in a line each. Those of a tree begin with spaces.
func printMembers(cmd *cobra.Command, members iter.Seq2[report.Member, error], long, asJSON bool) error {
	if asJSON {
		return printJSONLines(cmd, report.Nodes(members))
	}
	for m, err := range members {
		name := strings.Repeat("  ", m.Depth) + m.Name
		switch {
		case err != nil:
			return err
		case m.Unread != nil:
			say(cmd, "%s (%s)", name, report.Reason(m.Unread))
		case !m.IsArray():
			say(cmd, "%s/", name)
		case long:
			a, _ := m.Node.Array()
			say(cmd, "%s %s", name, summary(a))
		default:
			say(cmd, "%s", name)
		}
	}
	return nil
}

// summary describes an array in a few words.
func summary(a *zarr.Array) string {
	s := fmt.Sprintf("%v %v", a.Type(), a.Shape())
	if c := a.Meta().Grid.Regular(); c != nil {
		s += fmt.Sprintf(" in chunks of %v", c)
	}
	return s
}

func treeCmd() *cobra.Command {
	var asJSON bool
	cmd := new(sourceFlags).reads(&cobra.Command{
		Use:     "tree TARGET",
		Short:   "Show everything below a group",
		Long:    "Show a group and everything below it, arrays with data type, shape and chunks. With --json, each line is a node as info --json prints it.",
		Example: `  zarrdb tree weather.zdb@v1.0`,
		Args:    argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		return printMembers(cmd, report.Members(cmd.Context(), s, true), true, asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func infoCmd() *cobra.Command {
	var asJSON bool
	cmd := new(sourceFlags).reads(&cobra.Command{
		Use:   "info TARGET",
		Short: "Describe an array or a group",
		Example: `  zarrdb info weather.zdb:temp
  zarrdb info ./era5.zarr --json`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, args []string) error {
		info, err := report.Describe(cmd.Context(), s)
		if err != nil {
			return rootless(parseTarget(args[0]), err)
		}
		if info.Stored = report.StoredIn(cmd.Context(), s); asJSON {
			err = printJSON(cmd, info)
		} else {
			printInfo(cmd, info)
		}
		return cmp.Or(err, info.Unread)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func printInfo(cmd *cobra.Command, i report.Node) {
	width := 16
	for _, k := range i.Attributes.Keys() {
		width = min(max(width, utf8.RuneCountInString(report.Escape(k, ""))+1), 32)
	}
	row := func(name, value string) { say(cmd, "%-*s %s", width, name, value) }
	row("path", "/"+i.Path)
	row("node type", i.NodeType)
	row("zarr format", fmt.Sprint(i.ZarrFormat))
	if i.NodeType == "array" {
		row("shape", fmt.Sprint(i.Shape))
		row("data type", flatJSON(i.DataType))
		row("chunk shape", flatJSON(i.ChunkShape))
		row("codecs", codecsText(i.Codecs))
		row("fill value", flatJSON(i.FillValue))
		switch c := i.Stored; {
		case c != nil && c.More:
			row("stored", fmt.Sprintf("more than %s of %s", count(c.Chunks, "chunk"), number(c.AllChunks)))
		case c != nil:
			row("stored", fmt.Sprintf("%s of %s, %s for %s decoded", count(c.Chunks, "chunk"), number(c.AllChunks), size(*c.Bytes), size(c.DecodedBytes)))
		}
	}
	if len(i.Levels) > 0 {
		row("levels", strings.Join(i.Levels, ", "))
	}
	if i.Error != "" {
		row("not readable", i.Error)
	}
	if len(i.DimensionNames) > 0 {
		var names []string
		for _, n := range i.DimensionNames {
			if n == nil {
				names = append(names, "-")
			} else {
				names = append(names, *n)
			}
		}
		row("dimensions", strings.Join(names, ", "))
	}
	for k, v := range i.Attributes.All() {
		row("@"+k, flatJSON(v))
	}
}

func number(n int64) string {
	if n == math.MaxInt64 {
		return "2^63 or more"
	}
	return fmt.Sprint(n)
}

// codecsText says in words what a list of codecs does, such as "bytes (endian little), zstd (level 3)".
func codecsText(raw json.RawMessage) string {
	var list []struct {
		Name          string
		Configuration zarr.Attributes
	}
	if json.Unmarshal(raw, &list) != nil {
		return flatJSON(raw) // of Zarr v2, or names alone
	}
	var words []string
	for _, c := range list {
		var details []string
		for k, v := range c.Configuration.All() {
			text := strings.Trim(flatJSON(v), `"`)
			if strings.HasSuffix(k, "codecs") {
				text = codecsText(v)
			}
			details = append(details, strings.ReplaceAll(k, "_", " ")+" "+text)
		}
		if word := c.Name; len(details) > 0 {
			words = append(words, word+" ("+strings.Join(details, ", ")+")")
		} else {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}
