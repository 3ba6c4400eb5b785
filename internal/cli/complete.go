package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/serve/local"
)

// Shells ask "zarrdb __complete WORD... PART" for the words that PART may become. The scripts of "zarrdb completion" do
// so at each press of the key: an answer takes at most completeTime, and other commands use the database meanwhile.
const (
	completeTime = 2 * time.Second
	mostWords    = 1000
)

// completer is the completion of one word.
type completer func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective)

// addCompleters lets all commands complete arguments and flags, as the usage of each names them.
func addCompleters(c *cobra.Command) {
	for _, sub := range c.Commands() {
		addCompleters(sub)
	}
	if c.HasSubCommands() || c.ValidArgsFunction != nil || len(c.ValidArgs) > 0 {
		return
	}
	words := usageWords(c.Use)
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		i := min(len(args), len(words)-1)
		if i < 0 || i < len(args) && !strings.HasSuffix(words[i], "+") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeWord(cmd, words[i], args, part)
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		var fn completer
		switch f.Name {
		case "branch":
			fn = refWords(true, false)
		case "delete", "protect", "freeze", "unprotect":
			if c.Name() == "branch" || c.Name() == "tag" {
				fn = refWords(c.Name() == "branch", c.Name() == "tag")
			}
		case "session":
			fn = sessionWords
		case "append-dim", "new-dim", "message", "author", "value", "select":
			fn = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
		case "format":
			formats := []string{"1", "2", "3"}
			if c.Name() == "export" {
				formats = strings.Split(exportFormats(","), ", ")
			}
			fn = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return formats, cobra.ShellCompDirectiveNoFileComp
			}
		}
		if fn != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, fn) // it is there
		}
	})
}

// usageWords are the arguments in a line of usage. An argument that may be repeated ends in "+".
func usageWords(use string) (words []string) {
	for _, w := range strings.Fields(use)[1:] {
		if strings.Contains(w, "--") || strings.HasPrefix(w, "(") || strings.HasPrefix(w, "[-") {
			break
		}
		many := strings.Contains(w, "…") || strings.Contains(w, "...")
		w = strings.Trim(w, "[].…")
		if name, ok := strings.CutPrefix(w, "NAME=]"); ok { // of serve
			w = name
		}
		if many {
			w += "+"
		}
		words = append(words, w)
	}
	return words
}

// completeWord completes an argument by its name in the usage.
func completeWord(cmd *cobra.Command, name string, args []string, part string) ([]string, cobra.ShellCompDirective) {
	switch strings.TrimSuffix(name, "+") {
	case "REV", "A", "B", "UPSTREAM", "GOOD", "BAD", "REF":
		return refWords(true, true)(cmd, args, part)
	case "ID":
		return sessionWords(cmd, args, part)
	case "NAME", "KEY", "PREFIX":
		return nil, cobra.ShellCompDirectiveNoFileComp
	case "PATH": // of a node, in the database of the first argument
		if len(args) > 0 {
			if t := parseTarget(args[0]); t.db != "" {
				return paths(cmd, t.db, t.rev, "", part)
			}
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	t := parseTarget(part)
	if t.db == "" || t.db == part {
		return files(part)
	}
	if !plain(part) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	rest := part[len(t.db):]
	colon := strings.HasPrefix(rest, ":")
	if rev, ok := strings.CutPrefix(rest, "@"); ok {
		colon = revEnd(rev) < len(rev)
		if !colon {
			names, how := refWords(true, !strings.Contains(name, "@BRANCH"))(cmd, []string{t.db}, rev)
			for i := range names {
				names[i] = t.db + "@" + names[i]
			}
			return names, how | cobra.ShellCompDirectiveNoSpace
		}
	}
	if !colon {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before := part[:strings.LastIndex(part, ":")+1]
	return paths(cmd, t.db, t.rev, before, part[len(before):])
}

// plain reports whether a shell takes a word as it is. Words are offered only if they are plain: the scripts of shells insert
// them unquoted, and evaluate the line at the next press of the key.
func plain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("_-./@:+,=%~", r)
	})
}

// files completes the name of a file, directory or database. The shell does so itself where a name needs quotes.
func files(part string) (words []string, how cobra.ShellCompDirective) {
	if strings.HasPrefix(part, "~") || rootURL.MatchString(part) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	dir, last := filepath.Split(part)
	list, err := os.ReadDir(filepath.Join(".", dir))
	if filepath.IsAbs(dir) {
		list, err = os.ReadDir(dir)
	}
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, e := range list {
		name := e.Name()
		if !strings.HasPrefix(name, last) || last == "" && strings.HasPrefix(name, ".") || len(words) >= mostWords {
			continue
		}
		path := dir + name
		if !plain(path) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		switch info, err := os.Stat(path); {
		case err != nil && !errors.Is(err, fs.ErrPermission):
			continue
		case engine.IsDatabase(path):
			if words, how = append(words, path), cobra.ShellCompDirectiveNoSpace; name == last {
				words = append(words, path+":", path+"@")
			}
		case err == nil && info.IsDir():
			words, how = append(words, path+"/"), cobra.ShellCompDirectiveNoSpace
		default:
			words = append(words, path)
		}
	}
	return words, how | cobra.ShellCompDirectiveNoFileComp
}

// inDatabase returns the words that fn finds in the database of a target, which it opens to read. None come after
// completeTime, also if the database is still being opened then, which a context does not end.
func inDatabase(cmd *cobra.Command, args []string, fn func(ctx context.Context, db *engine.DB) []string) []string {
	if len(args) == 0 {
		return nil
	}
	t := parseTarget(args[0])
	if t.db == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	words := make(chan []string, 1)
	go func() { words <- wordsIn(ctx, cmd, t.db, fn) }()
	select {
	case list := <-words:
		return list
	case <-ctx.Done():
		return nil
	}
}

func wordsIn(ctx context.Context, cmd *cobra.Command, path string, fn func(ctx context.Context, db *engine.DB) []string) []string {
	db, err := local.Open(ctx, path, shared(cmd, readOnly))
	if err != nil {
		return nil
	}
	defer db.Close() // nothing was written
	return fn(ctx, db)
}

// refWords completes the name of a branch or tag of the database that the first argument names.
func refWords(heads, tags bool) completer {
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		return inDatabase(cmd, args, func(ctx context.Context, db *engine.DB) (words []string) {
			branches, named, err := db.Refs(ctx)
			if !heads || err != nil {
				branches = nil
			}
			if !tags || err != nil {
				named = nil
			}
			for _, r := range slices.Concat(branches, named) {
				if strings.HasPrefix(r.Name, part) && plain(r.Name) && len(words) < mostWords {
					words = append(words, r.Name)
				}
			}
			return words
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// sessionWords completes the id of a session of the database that the first argument names.
func sessionWords(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	return inDatabase(cmd, args, func(ctx context.Context, db *engine.DB) (words []string) {
		list, _ := db.Sessions(ctx)
		for _, s := range list {
			if id := s.ID.String(); strings.HasPrefix(id, part) && len(words) < mostWords {
				words = append(words, id+"\t"+report.Escape(strings.TrimSpace(s.Branch+" "+s.Label), ""))
			}
		}
		return words
	}), cobra.ShellCompDirectiveNoFileComp
}

// paths completes the path of a node in a version. before stands before it in the word.
func paths(cmd *cobra.Command, db, rev, before, part string) ([]string, cobra.ShellCompDirective) {
	group := part[:strings.LastIndex(part, "/")+1]
	words := inDatabase(cmd, []string{db}, func(ctx context.Context, db *engine.DB) (words []string) {
		s, err := db.At(ctx, rev)
		if err != nil {
			return nil
		}
		defer s.Close()
		for m, err := range s.Members(ctx, strings.Trim(group, "/")) {
			if err != nil || len(words) >= mostWords {
				return words
			}
			_, array := m.Node.Array()
			switch word := group + m.Name; {
			case !strings.HasPrefix(word, part) || !plain(word):
			case array:
				words = append(words, before+word)
			default:
				words = append(words, before+word+"/")
			}
		}
		return words
	})
	how := cobra.ShellCompDirectiveNoFileComp
	if slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "/") }) {
		how |= cobra.ShellCompDirectiveNoSpace
	}
	return words, how
}
