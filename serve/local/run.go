package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// Command is a command line that the server is to run, with files of this process.
type Command struct {
	Args []string // without the name of the program
	Dir  string   // default the working directory
	Env  []string // default [os.Environ]
	// Passed says that this process was to run the command for another one.
	Passed bool

	Stdin, Stdout, Stderr *os.File // default those of this process
}

// Run runs a command line in the server, and returns its exit code when it has
// ended. When ctx ends the command is cancelled, as by Ctrl-C; Run waits for its end
// all the same. Errors: [ErrVersion] if the server is another build that does not know
// the command, [serve.ErrDenied] if it runs no commands of this user, errors.ErrUnsupported if it runs none or the
// system passes no descriptors, [ErrGone] if it ended before it began with the
// command, [ErrUnknown] too if it may have begun.
func (c *Client) Run(ctx context.Context, cmd Command) (code int, err error) {
	in := wire.Run{Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Passed: cmd.Passed}
	if in.Dir == "" {
		if in.Dir, err = os.Getwd(); err != nil {
			return 0, err
		}
	}
	if in.Env == nil {
		in.Env = os.Environ()
	}
	files := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i, f := range []*os.File{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		if f != nil {
			files[i] = f
		}
	}
	meta, err := json.Marshal(&in)
	if err != nil {
		return 0, err
	}
	l, err := c.link(ctx)
	if err != nil {
		return 0, err
	}
	if l.other { // it would see the environment, and get the files
		return 0, fmt.Errorf("%w: the process that has the database open is of another user, and runs no commands of this one", serve.ErrDenied)
	}
	f, err := l.call(ctx, &wire.Frame{Op: wire.OpRun, Meta: meta, Pass: []wire.Descriptor{files[0], files[1], files[2]}}, true)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var out wire.Exit
	err = wire.ParseJSON(f.Op, f.Meta, &out)
	if err == nil && out.Code == serve.RunUnknown {
		err = fmt.Errorf("%w, %s, has the database open, and does not know this command", ErrVersion, l.hello.Version)
	}
	return out.Code, err
}
