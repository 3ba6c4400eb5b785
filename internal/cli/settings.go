package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// settingNames are the lines of the file of settings: NAME = VALUE.
var settingNames = []string{"author", "database", "pager", "progress", "wait"}

// settings reads the file of settings of the user; none without a file.
func settings() (map[string]string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, nil // a user without a home has none
	}
	path := filepath.Join(dir, "zarrdb", "settings")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil // the home may be that of another user, or no directory
	} else if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	set := map[string]string{}
	for i, line := range strings.Split(string(b), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !ok || !strings.Contains(" "+strings.Join(settingNames, " ")+" ", " "+name+" ") {
			return nil, usagef("%s:%d: %q is no setting; want NAME = VALUE with one of %s", path, i+1, line, strings.Join(settingNames, ", "))
		}
		set[name] = strings.TrimSpace(value)
	}
	return set, nil
}

// applySettings gives flags that were not given the values of the file of settings.
func applySettings(cmd *cobra.Command) error {
	set, err := settings()
	if err != nil {
		return err
	}
	flags := cmd.Root().PersistentFlags()
	if wait, ok := set["wait"]; ok && !flags.Changed("wait") {
		if err := flags.Set("wait", wait); err != nil {
			return usagef("settings: wait = %s: %w", wait, err)
		}
	}
	switch set["progress"] {
	case "", "yes":
	case "no":
		_ = flags.Set("no-progress", "true") // it is there
	default:
		return usagef("settings: progress = %s: want yes or no", set["progress"])
	}
	return nil
}

// addDefault lets a command whose first argument is a database or target take $ZARRDB_DB, or the database of the
// settings: without arguments, and where an argument begins with ':' or '@'.
func addDefault(c *cobra.Command) {
	for _, sub := range c.Commands() {
		addDefault(sub)
	}
	words := usageWords(c.Use)
	check, run := c.Args, c.RunE
	if len(words) == 0 || !isTarget(words[0]) || check == nil || run == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if _, err := settings(); err != nil {
			return err
		}
		return check(cmd, fillTargets(words, args))
	}
	c.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, fillTargets(words, args)) }
}

// isTarget reports whether a word of a usage stands for something in a database.
func isTarget(word string) bool {
	return strings.HasPrefix(word, "DB") || strings.HasPrefix(word, "TARGET")
}

func fillTargets(words, args []string) []string {
	filled, db := append([]string{}, args...), os.Getenv("ZARRDB_DB")
	if set, err := settings(); err == nil { // else nothing runs
		db = cmp.Or(db, set["database"])
	}
	switch {
	case db == "":
		return args
	case len(args) == 0:
		return []string{db}
	}
	for i, arg := range filled {
		if isTarget(words[min(i, len(words)-1)]) && (strings.HasPrefix(arg, ":") || strings.HasPrefix(arg, "@")) {
			filled[i] = db + arg
		}
	}
	return filled
}
