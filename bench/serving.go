package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/serve/web"
	"github.com/zarrdb/zarrdb/zarr"
)

// Sizes of the workload "serving".
const (
	small, middle, large = 100, 64 << 10, 2 << 20
	smallCount           = 1000
	middleCount          = 256
	largeCount           = 32
	idleConnections      = 1000
	readers              = 4
)

// roleVariable names the environment variable that makes this program play a part in the
// workload "serving", in another process.
const roleVariable = "ZARRDB_BENCH_ROLE"

// serving measures what it costs to use a database through the process that has it
// open: over the local socket beside the same work in one process, and over HTTP beside
// nginx with the same chunks as files.
func serving(ctx context.Context, b *bench) error {
	dir, files := b.path("serving.zdb"), b.path("files")
	defer os.RemoveAll(dir)
	defer os.RemoveAll(files)
	planes := int64(128) // of 2 MiB chunks
	if b.quick {
		planes = 8
	}
	if err := errors.Join(os.Mkdir(files, 0o755), fillServed(ctx, dir, files, planes)); err != nil {
		return err
	}
	holder, err := play(ctx, "hold", dir)
	if err != nil {
		return err
	}
	defer holder.end()
	address, err := holder.line()
	if err != nil {
		return err
	}
	return errors.Join(
		socketGets(ctx, b, dir),
		manyReaders(ctx, b, dir, holder, planes*large),
		socketCommits(ctx, b, dir),
		overHTTP(ctx, b, address, files),
		idle(ctx, b, dir, holder),
	)
}

// fillServed makes values of three sizes, the same as files, and an array of raw
// chunks of 2 MiB.
func fillServed(ctx context.Context, dir, files string, planes int64) error {
	db, err := engine.Create(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	random := rand.NewChaCha8([32]byte{1})
	_, err = db.Update(ctx, "main", "values", func(s *engine.Session) error {
		for _, kind := range []struct{ size, count int }{{small, smallCount}, {middle, middleCount}, {large, largeCount}} {
			value := make([]byte, kind.size)
			for i := range kind.count {
				_, _ = random.Read(value) // it never fails
				key := servedKey(kind.size, i)
				if err := errors.Join(s.Set(ctx, key, value), os.WriteFile(filepath.Join(files, key), value, 0o644)); err != nil {
					return err
				}
			}
		}
		a, err := s.CreateArray(ctx, "raw", zarr.Spec{
			Shape: []int64{planes, 512, 1024}, Chunks: []int64{1, 512, 1024}, DataType: "float32",
			Codecs: json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`),
		})
		if err != nil {
			return err
		}
		data := make([]byte, large)
		for p := range planes {
			_, _ = random.Read(data)
			if err := a.WriteBytes(ctx, zarr.Sel(zarr.Slice(p, p+1, 1)), data); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func servedKey(size, i int) string { return fmt.Sprintf("%d-%d", size, i) }

// socketGets measures values of a version through the socket. A client that reads a
// long value the first time waits until the holder has compared its checksum. The best
// of many rounds counts, for machines with other work.
func socketGets(ctx context.Context, b *bench, dir string) error {
	for _, kind := range []struct {
		name        string
		size, count int
	}{{"100 B", small, smallCount}, {"2 MiB in place", large, largeCount}} {
		var first, again []time.Duration // medians of rounds
		for range 20 {
			err := withVersion(ctx, dir, func(v *zarrdb.Snapshot) error {
				for round := range 5 {
					times := make([]time.Duration, kind.count)
					for i := range times {
						start := time.Now()
						value, err := v.Locate(ctx, servedKey(kind.size, i))
						if err == nil {
							err = value.View(ctx, kv.All(), func([]byte) error { return nil })
						}
						if err != nil {
							return err
						}
						times[i] = time.Since(start)
					}
					if m := quantile(times, 0.5); round == 0 {
						first = append(first, m)
					} else {
						again = append(again, m)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		b.add("serving", "local socket", "get of "+kind.name+" p50", micros(slices.Min(again)), "us")
		if kind.size == large {
			b.add("serving", "local socket", "get of "+kind.name+", first time p50", micros(slices.Min(first)), "us")
		}
	}
	return nil
}

// withVersion calls fn with the head of main, on a connection of its own.
func withVersion(ctx context.Context, dir string, fn func(*zarrdb.Snapshot) error) error {
	db, err := zarrdb.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(ctx, "main", fn)
}

// manyReaders compares several processes that each read all of an array with the
// process that has the database open. They take turns, the best of each counts.
func manyReaders(ctx context.Context, b *bench, dir string, holder *actor, size int64) error {
	var clients []*actor
	for range readers {
		c, err := play(ctx, "read", dir)
		if err != nil {
			return err
		}
		defer c.end()
		clients = append(clients, c)
	}
	readAll := func(of []*actor) (time.Duration, error) {
		start := time.Now()
		for _, c := range of {
			if err := c.say("read"); err != nil {
				return 0, err
			}
		}
		for _, c := range of {
			if _, err := c.line(); err != nil {
				return 0, err
			}
		}
		return time.Since(start) / time.Duration(len(of)), nil
	}
	var alone, together time.Duration
	for round := range 8 {
		one, err := readAll([]*actor{holder})
		if err != nil {
			return err
		}
		each, err := readAll(clients)
		if err != nil {
			return err
		}
		if round == 1 || round > 1 && one < alone { // the first round maps and touches memory
			alone = one
		}
		if round == 1 || round > 1 && each < together {
			together = each
		}
	}
	b.add("serving", "raw chunks of 2 MiB", "1 reader, in the process", gbps(int(size), alone), "GB/s")
	b.add("serving", "raw chunks of 2 MiB", fmt.Sprintf("%d client processes", readers), gbps(int(size), together), "GB/s")
	b.add("serving", "raw chunks of 2 MiB", "clients beside the process", 100*alone.Seconds()/together.Seconds(), "%")
	return nil
}

// socketCommits compares commits of one chunk through the socket with commits of the
// process itself, in turn, in two databases.
func socketCommits(ctx context.Context, b *bench, dir string) error {
	own := b.path("commits.zdb")
	defer os.RemoveAll(own)
	inProcess, err := zarrdb.Open(ctx, own, &zarrdb.Options{Create: true, Private: true})
	if err != nil {
		return err
	}
	defer inProcess.Close()
	through, err := zarrdb.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer through.Close()
	rounds := 30
	if b.quick {
		rounds = 2
	}
	settle()
	var medians [2][]time.Duration
	value := make([]byte, chunkBytes)
	for range rounds {
		for j, db := range []*zarrdb.DB{inProcess, through} {
			times := make([]time.Duration, 50)
			for i := range times {
				copy(value, strconv.Itoa(i))
				start := time.Now()
				_, err := db.Update(ctx, "", "chunk", func(s *zarrdb.Session) error { return s.Set(ctx, "chunk", value) })
				if err != nil {
					return err
				}
				times[i] = time.Since(start)
			}
			medians[j] = append(medians[j], quantile(times, 0.5))
		}
	}
	here, there := micros(slices.Min(medians[0])), micros(slices.Min(medians[1]))
	b.add("serving", "commit of 1 chunk", "in the process p50", here, "us")
	b.add("serving", "commit of 1 chunk", "local socket p50", there, "us")
	b.add("serving", "commit of 1 chunk", "more through the socket", there-here, "us")
	return nil
}

// idle measures what connections without requests cost the holder.
func idle(ctx context.Context, b *bench, dir string, holder *actor) error {
	before, err := holder.resident()
	if err != nil || before == 0 {
		return err // this system does not tell
	}
	for range idleConnections {
		c, err := local.DialDir(ctx, dir, nil)
		if err != nil {
			return err
		}
		defer c.Close()
	}
	after, err := holder.resident()
	if err != nil {
		return err
	}
	b.add("serving", fmt.Sprintf("%d idle connections", idleConnections), "memory of the holder", float64(after-before)/(1<<20), "MiB")
	return nil
}

// actor is another process of this program, which answers each line with a line.
type actor struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func play(ctx context.Context, role, dir string) (*actor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &actor{cmd: exec.CommandContext(ctx, self)}
	a.cmd.Env = append(os.Environ(), roleVariable+"="+role+" "+dir)
	a.cmd.Stderr = os.Stderr
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	a.out = bufio.NewReader(out)
	return a, a.cmd.Start()
}

func (a *actor) say(line string) error {
	_, err := io.WriteString(a.in, line+"\n")
	return err
}

func (a *actor) line() (string, error) {
	line, err := a.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("another process of the benchmark: %w", err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// resident is the memory of the process in bytes, 0 if the system does not tell.
func (a *actor) resident() (int64, error) {
	if err := a.say("memory"); err != nil {
		return 0, err
	}
	line, err := a.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(line, 10, 64)
}

func (a *actor) end() {
	_ = a.in.Close()
	_ = a.cmd.Wait() // its messages are on standard error
}

// act plays a role, if the environment names one, and reports whether it does.
func act() (bool, error) {
	role, dir, ok := strings.Cut(os.Getenv(roleVariable), " ")
	if !ok {
		return false, nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := zarrdb.Open(ctx, dir, &zarrdb.Options{Engine: engine.Options{CacheBytes: -1}})
	if err != nil {
		return true, err
	}
	defer db.Close()
	if role == "wait" { // for the end of standard input
		fmt.Println("open")
		_, err := io.Copy(io.Discard, os.Stdin)
		return true, err
	}
	if role == "hold" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return true, err
		}
		defer l.Close()
		table := serve.New(serve.Options{})
		if err := table.AddDatabase("db", db.Engine()); err != nil {
			return true, err
		}
		h := web.Server(web.New(table, web.Options{ReadOnly: true, Anonymous: &serve.Principal{Name: "anonymous"}}), nil)
		go func() { _ = h.Serve(web.Listener(l)) }()
		fmt.Printf("http://%s/db/v/main/\n", l.Addr())
	}
	return true, db.View(ctx, "main", func(v *zarrdb.Snapshot) error { return obey(ctx, v) })
}

// obey runs the commands of standard input.
func obey(ctx context.Context, v *zarrdb.Snapshot) error {
	a, err := v.Array(ctx, "raw")
	if err != nil {
		return err
	}
	size := int64(a.Type().Size())
	for _, n := range a.Shape() {
		size *= n
	}
	var data []byte
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "read":
			if data == nil {
				if data, err = memory(int(size)); err != nil {
					return err
				}
			}
			if err := a.ReadBytes(ctx, zarr.Sel(), data); err != nil {
				return err
			}
			fmt.Println("read")
		case "memory":
			runtime.GC()
			debug.FreeOSMemory()
			fmt.Println(resident())
		}
	}
	return lines.Err()
}
