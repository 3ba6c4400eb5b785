package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// workScript does the jobs of a contest with other programs, and with our Python package.
//
//go:embed work.py
var workScript string

// job is the next job of a contestant.
type job struct {
	Work     string          `json:"work"`
	Dir      string          `json:"dir"`    // of the contestant
	Source   string          `json:"source"` // a file with the values
	Variant  string          `json:"variant"`
	Document json.RawMessage `json:"document,omitempty"` // zarr.json of the array
	Shape    []int64         `json:"shape,omitempty"`
	Chunks   []int64         `json:"chunks,omitempty"` // that a read decodes
	Shards   []int64         `json:"shards,omitempty"`
	Touched  bool            `json:"touched,omitempty"` // read into memory that was touched before
	Sum      bool            `json:"sum,omitempty"`     // answer the checksum of the elements read
	Cached   bool            `json:"cached,omitempty"`  // keep decoded chunks
	Threads  int             `json:"threads,omitempty"`
	Count    int             `json:"count,omitempty"`
	Seed     int             `json:"seed,omitempty"`
}

// answer is the result of a job. Cannot says why a program has no such thing.
type answer struct {
	Figures map[string]float64 `json:"figures,omitempty"`
	Sum     uint32             `json:"sum,omitempty"`
	Cannot  string             `json:"cannot,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// contestant is a program that does jobs in a process of its own:
//
//	driver ── job, a line of JSON ──▶ contestant
//	       ◀── answer, one line ─────
type contestant struct {
	name   string
	held   bool // works beside another process that has the database open
	ours   bool
	dir    string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	holder *actor
	failed error // ends its part
}

// Contestants: our doors first.
const (
	inProcess     = "zarrdb"
	secondProcess = "second process"
	inPython      = "Python"
	throughZarr   = "through zarr-python"
	lmdbPeer      = "zarr 2 + LMDB"
)

var (
	doors = []string{inProcess, secondProcess, inPython, throughZarr}
	peers = []string{"tensorstore", "tensorstore ocdbt", "zarr-python", "zarrs", "icechunk", "tiledb", lmdbPeer}
)

// contestants starts the programs for which this machine has an interpreter.
func (b *bench) contestants(ctx context.Context) (all []*contestant) {
	for _, name := range append(append([]string{}, doors...), peers...) {
		c := &contestant{name: name, dir: b.path("contest-" + strings.NewReplacer(" ", "-", "+", "and").Replace(name))}
		switch python := b.python; {
		case name == inProcess || name == secondProcess:
			c.cmd = exec.CommandContext(ctx, must(os.Executable()))
			c.cmd.Env = append(os.Environ(), roleVariable+"=work "+name)
		case name == lmdbPeer:
			python = b.python2
			fallthrough
		default:
			if python == "" {
				continue
			}
			c.cmd = exec.CommandContext(ctx, python, "-c", workScript, name, must(filepath.Abs("python")))
		}
		c.ours = name == inProcess || name == secondProcess || name == inPython || name == throughZarr
		c.held = c.ours && name != inProcess
		c.cmd.Stderr = os.Stderr
		c.out, c.in = bufio.NewReader(must(c.cmd.StdoutPipe())), must(c.cmd.StdinPipe())
		check(c.cmd.Start())
		all = append(all, c)
	}
	return all
}

// do runs a job. The first failure of a program ends its part, other programs go on.
func (c *contestant) do(j job) (a answer) {
	if c.failed != nil {
		return answer{Cannot: c.failed.Error()}
	}
	j.Dir = c.dir
	defer func() {
		if a.Error != "" {
			a.Cannot, c.failed = a.Error, errors.New(a.Error)
			fmt.Fprintf(os.Stderr, "bench: %s: %s: %s\n", c.name, j.Work, a.Error)
		}
	}()
	if err := json.NewEncoder(c.in).Encode(j); err != nil {
		return answer{Error: err.Error()}
	}
	line, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

// hold has another process open the database, for contestants that join one.
func (c *contestant) hold(ctx context.Context, cached bool) {
	c.leave()
	if c.held && c.failed == nil {
		role := "wait"
		if cached {
			role = "cache"
		}
		c.holder = play(ctx, role, c.dir)
		c.holder.line()
	}
}

// leave ends that process.
func (c *contestant) leave() {
	if c.holder != nil {
		c.holder.end()
		c.holder = nil
	}
}

// end stops the program.
func (c *contestant) end() {
	_ = c.in.Close()
	_ = c.cmd.Wait()
	c.leave()
	_ = os.RemoveAll(c.dir)
}

// ticks is the processor time that the program and its holder took, in hundredths of seconds.
func (c *contestant) ticks() (n int64) {
	n = processTicks(c.cmd.Process.Pid)
	if c.holder != nil {
		n += processTicks(c.holder.cmd.Process.Pid)
	}
	return n
}

// processTicks reads the processor time of a process; 0 where the system does not tell.
func processTicks(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return sumFields(strings.Fields(rest), 11, 15)
}

// busyTicks is the processor time of all that runs on the machine.
func busyTicks() int64 {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	return sumFields(f, 1, 4) + sumFields(f, 6, 9) // without idle and waiting for the disk
}

func sumFields(f []string, from, to int) (n int64) {
	for i := from; i < min(to, len(f)); i++ {
		v, _ := strconv.ParseInt(f[i], 10, 64)
		n += v
	}
	return n
}
