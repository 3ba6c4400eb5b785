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

// wait makes a command wait for another process that has a database open, up to
// --wait, with a note on a terminal.
func wait(cmd *cobra.Command, o *engine.Options) {
	limit, ok := cmd.Root().PersistentFlags().Lookup("wait").Value.(*duration)
	if !ok {
		return
	}
	mayForward := len(here(cmd).held) == 0 || here(cmd).apart
	told := !onTerminal(cmd)
	o.LockWait = time.Duration(*limit)
	o.Locked = func(held *engine.LockedError) error {
		if mayForward && local.Reachable(held) {
			return held // it can run the command, or be read through
		}
		if !told {
			told = true
			note(cmd, "%s is in use by %s; waiting", filepath.Dir(held.Dir), holder(held))
		}
		return nil
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
