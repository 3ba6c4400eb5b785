package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// Buffered allows to run the command where descriptors cannot be passed, as on
	// Windows, or not all three are files: without standard input, and its output is
	// written when it has ended.
	Buffered bool

	Stdin          io.Reader // default [os.Stdin]
	Stdout, Stderr io.Writer // default [os.Stdout] and [os.Stderr]
}

// descriptors returns the files that are passed to the server, nil if they cannot be.
func (c *Command) descriptors() []wire.Descriptor {
	var files []wire.Descriptor
	for _, f := range []any{c.Stdin, c.Stdout, c.Stderr} {
		file, ok := f.(*os.File)
		if !ok {
			return nil
		}
		files = append(files, file)
	}
	return files
}

// Run runs a command line in the server, and returns its exit code when it has
// ended. When ctx ends the command is cancelled, as by Ctrl-C; Run waits for its end
// all the same. Errors: [ErrVersion] if the server is another build that does not know
// the command, [serve.ErrDenied] if it runs no commands of this user,
// errors.ErrUnsupported if it runs none or would have to be Buffered, [ErrGone] if it
// ended before it began with the command, [ErrUnknown] too if it may have begun.
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
	if cmd.Stdin == nil {
		cmd.Stdin = os.Stdin
	}
	if cmd.Stdout == nil {
		cmd.Stdout = os.Stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
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
	request := &wire.Frame{Op: wire.OpRun, Meta: meta}
	if l.w.PassesFiles() {
		request.Pass = cmd.descriptors()
	}
	if request.Pass == nil && !cmd.Buffered {
		return 0, fmt.Errorf("%w: this system does not pass standard input and output to another process", errors.ErrUnsupported)
	}
	f, err := l.call(ctx, request, true)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var out wire.Exit
	err = wire.ParseJSON(f.Op, f.Meta, &out)
	if err == nil && (out.Stdout < 0 || out.Stdout > len(f.Body)) {
		err = fmt.Errorf("%w: %d bytes of output in %d", wire.ErrProtocol, out.Stdout, len(f.Body))
	}
	if err == nil && len(f.Body) > 0 {
		_, err1 := cmd.Stdout.Write(f.Body[:out.Stdout])
		_, err2 := cmd.Stderr.Write(f.Body[out.Stdout:])
		err = errors.Join(err1, err2)
	}
	if err == nil && out.Code == serve.RunUnknown {
		err = fmt.Errorf("%w, %s, has the database open, and does not know this command", ErrVersion, l.hello.Version)
	}
	return out.Code, err
}
