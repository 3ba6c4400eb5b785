package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/local"
)

// duration is the value of --wait.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return errors.New("a time such as 30s, 5m or 1h is due")
	}
	*d = duration(v)
	return nil
}

// locked is what a command does if another process has a database open: with
// --wait it waits, and says so on a terminal. nil is an error at once.
func locked(cmd *cobra.Command) func(*engine.LockedError, time.Duration) error {
	limit, ok := cmd.Root().PersistentFlags().Lookup("wait").Value.(*duration)
	if !ok || *limit == 0 {
		return nil
	}
	mayForward := len(here(cmd).held) == 0
	wait := engine.WaitLocked(cmd.Context(), time.Duration(*limit))
	told := !onTerminal(cmd)
	return func(held *engine.LockedError, waited time.Duration) error {
		if mayForward && local.Reachable(held) {
			return held // it can run the command
		}
		if !told {
			told = true
			note(cmd, "%s is in use by %s; waiting", filepath.Dir(held.Dir), holder(held))
		}
		return wait(held, waited)
	}
}

// holder names the process that has a database open.
func holder(held *engine.LockedError) string {
	h := held.Holder
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("%s (process %d on %s, since %s)", h.Program, h.PID, h.Host, h.Since.Local().Format(time.DateTime))
}
