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

// wait makes a command wait for another process that has a database open and does not serve
// it, up to --wait, and notes that it waits.
func wait(cmd *cobra.Command, o *local.OpenOptions) {
	limit, ok := cmd.Root().PersistentFlags().Lookup("wait").Value.(*duration)
	if !ok {
		return
	}
	o.Engine.LockWait = time.Duration(*limit)
	o.Waiting = func(held *engine.LockedError) {
		switch {
		case local.Reachable(held):
			note(cmd, "zarrdb: waiting for %s, which has the database open and does not answer", holder(held))
		case onTerminal(cmd):
			note(cmd, "%s is in use by %s; waiting", filepath.Dir(held.Dir), holder(held))
		}
	}
}

// holder names the process that has a database open.
func holder(held *engine.LockedError) string {
	h := held.Holder
	switch {
	case h.PID == 0:
		return "another process"
	case h.Since.IsZero():
		return fmt.Sprintf("%s (process %d on %s)", h.Program, h.PID, h.Host)
	}
	return fmt.Sprintf("%s (process %d on %s, since %s)", h.Program, h.PID, h.Host, h.Since.Local().Format(time.DateTime))
}
