package elements

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// calls are what the operation call does, by name.
var calls = map[string]func(ctx context.Context, r *Request, in []byte) (any, error){
	"at": at, "resolve": onDB(resolve), "refs": onDB(refs), "log": onDB(log), "diff": onDB(diff), "ask": onDB(ask), "sessions": onDB(sessions),
	"here": with(here), "bound": with(bound), "leave": with(leave),
	"begin": begin, "resume": resume, "fork": fork, "join": onSession(join), "move": onSession(move), "guard": onSession(guard), "append_gaps": onSession(appendGaps),
	"rebase": onSession(rebase), "changes": onSession(changes), "savepoint": onSession(savepoint), "commit": with(commit),
	"discard": onSession(discard), "delete_prefix": onSession(deletePrefix),
}

type none struct{}

// call runs a function: the text is its name, a zero byte and its argument in JSON. The answer is JSON, or nothing.
func call(ctx context.Context, r *Request) ([]byte, error) {
	name, in, _ := strings.Cut(r.Text, "\x00")
	fn := calls[name]
	if fn == nil {
		return nil, fmt.Errorf("zarrdb: no function %q", name)
	}
	out, err := fn(ctx, r, []byte(in))
	if err != nil || out == (none{}) {
		return nil, err
	}
	return json.Marshal(out)
}

// with is a function about what a handle stands for.
func with[T, In, Out any](fn func(ctx context.Context, of T, in In) (Out, error)) func(ctx context.Context, r *Request, in []byte) (any, error) {
	return func(ctx context.Context, r *Request, text []byte) (any, error) {
		var in In
		if len(text) > 0 {
			if err := json.Unmarshal(text, &in); err != nil {
				return nil, fmt.Errorf("%w: %w", txn.ErrRequest, err)
			}
		}
		v, err := of[T](r.Handle)
		if err != nil {
			return nil, err
		}
		return fn(ctx, v, in)
	}
}

func onDB[In, Out any](fn func(ctx context.Context, db *engine.DB, in In) (Out, error)) func(ctx context.Context, r *Request, in []byte) (any, error) {
	return with(func(ctx context.Context, d *database, in In) (Out, error) { return fn(ctx, d.DB, in) })
}

// here is an error if the database is another one than that which was opened.
func here(ctx context.Context, d *database, _ none) (none, error) { return none{}, d.Here(ctx) }

// bound changes how many milliseconds a process that does not answer is waited for.
func bound(_ context.Context, d *database, ms int64) (none, error) {
	d.Bound(time.Duration(ms) * time.Millisecond)
	return none{}, nil
}

// leave has the process that serves the database end, if this one has started it for itself alone.
func leave(ctx context.Context, d *database, _ none) (none, error) {
	waits, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	if err := d.Leave(waits); waits.Err() == nil {
		return none{}, err
	}
	return none{}, ctx.Err() // that process ends when it has done what other threads asked for
}

// at opens a version. The integer is its handle.
func at(ctx context.Context, r *Request, in []byte) (any, error) {
	return with(func(ctx context.Context, d *database, rev string) (*commitOut, error) {
		s, err := d.DB.At(ctx, rev)
		if err != nil {
			return nil, err
		}
		r.add(&view{db: d, snapshot: s})
		return commitOf(s.Commit()), nil
	})(ctx, r, in)
}

// commitOut is a commit.
type commitOut struct {
	ID         string            `json:"id"`
	Parents    []string          `json:"parents,omitempty"`
	Author     string            `json:"author"`
	Time       time.Time         `json:"time"`
	Message    string            `json:"message"`
	Properties map[string]string `json:"properties,omitempty"`
	Warnings   []string          `json:"warnings,omitempty"` // of one that was just made: background work that failed before
}

func commitOf(c *txn.Commit) *commitOut {
	out := &commitOut{ID: c.ID.String(), Author: c.Author, Time: c.Time, Message: c.Message, Properties: c.Properties}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.String())
	}
	return out
}

func resolve(ctx context.Context, db *engine.DB, rev string) (*commitOut, error) {
	c, err := db.Lookup(ctx, rev)
	if err != nil {
		return nil, err
	}
	return commitOf(c), nil
}

// refs are the branches and the tags, each with the id of its commit.
func refs(ctx context.Context, db *engine.DB, _ none) (out [2][][2]string, err error) {
	branches, tags, err := db.Refs(ctx)
	for i, list := range [][]txn.Ref{branches, tags} {
		out[i] = [][2]string{}
		for _, r := range list {
			out[i] = append(out[i], [2]string{r.Name, r.Commit.String()})
		}
	}
	return out, err
}

// page is which part of a sequence is asked for.
type page struct {
	Skip  int `json:"skip"`
	Limit int `json:"limit"`
}

// list is a part of a sequence, and whether there is more.
type list[T any] struct {
	List []T  `json:"list"`
	More bool `json:"more"`
}

// part collects a part of a sequence.
func part[T, Out any](p page, all iter.Seq2[T, error], convert func(T) Out) (out list[Out], err error) {
	n := 0
	for v, err := range all {
		if err != nil {
			return out, err
		}
		if n++; n <= p.Skip {
			continue
		}
		if len(out.List) == p.Limit {
			out.More = true
			break
		}
		out.List = append(out.List, convert(v))
	}
	return out, nil
}

func log(ctx context.Context, db *engine.DB, in struct {
	page
	Rev, Path string
}) (list[*commitOut], error) {
	from, err := db.Resolve(ctx, in.Rev)
	if err != nil {
		return list[*commitOut]{}, err
	}
	all := db.Versions().Log(ctx, from)
	if in.Path != "" {
		all = func(yield func(*txn.Commit, error) bool) {
			for c, err := range db.Versions().History(ctx, from, in.Path, false) {
				if !yield(c.Commit, err) {
					return
				}
			}
		}
	}
	return part(in.page, all, commitOf)
}

// changeOut is a key that differs.
type changeOut struct {
	Key   string    `json:"key"`
	Array string    `json:"array"`
	Chunk []int64   `json:"chunk,omitempty"`
	Old   *bytesOut `json:"old,omitempty"`
	New   *bytesOut `json:"new,omitempty"`
}

type bytesOut struct {
	Kind      string `json:"kind"`
	Length    int64  `json:"length"`
	URL       string `json:"url,omitempty"`
	Validator string `json:"validator,omitempty"`
	Offset    uint64 `json:"offset,omitempty"`
}

func changeOf(c txn.Change) changeOut {
	at := func(v *txn.KeyValue) *bytesOut {
		if v == nil {
			return nil
		}
		return &bytesOut{Kind: v.Kind, Length: v.Length, URL: v.URL, Validator: v.Validator, Offset: v.Offset}
	}
	return changeOut{Key: c.Key, Array: c.Array, Chunk: c.Coords, Old: at(c.Old), New: at(c.New)}
}

func diff(ctx context.Context, db *engine.DB, in struct {
	page
	From, To, Prefix string
}) (list[changeOut], error) {
	return part(in.page, db.Diff(ctx, in.From, in.To, in.Prefix), changeOf)
}

// ask has the process that serves the database do something.
func ask(ctx context.Context, db *engine.DB, in struct {
	Name string
	In   json.RawMessage
}) (json.RawMessage, error) {
	return db.Versions().Remote().Ask(ctx, in.Name, in.In, nil)
}
