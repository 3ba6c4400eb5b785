package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// carefully saves an append after each of its pieces.
func carefully(t *testing.T) {
	every, atOnce := saveEvery, piecesAtOnce
	saveEvery, piecesAtOnce = time.Duration(0), 1
	t.Cleanup(func() { saveEvery, piecesAtOnce = every, atOnce })
}

// counted are pieces that count how often they are opened.
type counted struct {
	mu    sync.Mutex
	opens []int
	// before, if not nil, is called before a piece is opened for the nth time.
	before func(i, n int) error
}

func (c *counted) pieces(list []Piece) []Piece {
	c.opens = make([]int, len(list))
	out := slices.Clone(list)
	for i := range out {
		open := out[i].Open
		out[i].Open = func(ctx context.Context) (*Source, error) {
			c.mu.Lock()
			c.opens[i]++
			n := c.opens[i]
			c.mu.Unlock()
			if c.before != nil {
				if err := c.before(i, n); err != nil {
					return nil, err
				}
			}
			return open(ctx)
		}
	}
	return out
}

// opensOf is how often an append opens a piece: to plan, to compare elements if it
// copies, and to write. The first one stays open from when it is compared.
func opensOf(i int, link bool) int {
	if link || i == 0 {
		return 2
	}
	return 3
}

func noSessions(t *testing.T, db *DB) {
	t.Helper()
	if list, err := db.Sessions(bg); len(list) > 0 || err != nil {
		t.Errorf("sessions %v, %v", list, err)
	}
}

var errServer = errors.New("the server is down")

// appendStopped appends and is stopped before a piece: by its context, or by an
// error.
func appendStopped(t *testing.T, path, config, how string, o ImportOptions, link bool, list []Piece, at int) {
	t.Helper()
	db, err := Open(bg, path, linkOptions(t, config))
	must.Do(t, err)
	before := head(t, db, "")
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	c := &counted{before: func(i, n int) error {
		switch {
		case i != at || n != opensOf(i, link):
		case how == "canceled":
			cancel()
		default:
			return errServer
		}
		return nil
	}}
	p := must.Get(PlanAppend(ctx, c.pieces(list), AppendOptions{Dim: "time", Link: link}))(t)
	_, err = db.Append(ctx, p, o)
	if !errors.Is(err, ErrResumable) || how == "canceled" != errors.Is(err, context.Canceled) {
		t.Fatalf("%s before piece %d: %v", how, at, err)
	}
	if head(t, db, "") != before {
		t.Errorf("%s before piece %d: there is a commit", how, at)
	}
	left, err := db.Sessions(bg)
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0].Label, fmt.Sprintf(": %d done", at)) {
		t.Fatalf("%s before piece %d: sessions %v, %v", how, at, left, err)
	}
	closeChecked(t, db)
}

// resumeAppend goes on with it, and makes sure that what is complete is not read
// again.
func resumeAppend(t *testing.T, path, config string, o ImportOptions, link bool, list []Piece, at int) {
	t.Helper()
	db := must.Get(Open(bg, path, linkOptions(t, config)))(t)
	defer closeChecked(t, db)
	c := &counted{}
	o.Resume = true
	must.Get(appendAll(db, "time", link, o, c.pieces(list)...))(t)
	for i, n := range c.opens {
		if i > 0 && i < at && n != 1 || (i == 0 || i >= at) && n != opensOf(i, link) {
			t.Errorf("stopped before piece %d: piece %d was opened %d times", at, i, n)
		}
	}
	noSessions(t, db)
}

// Stores of any shape, stopped before any piece, read as their elements put
// together.
func TestAppendResumedModel(t *testing.T) {
	carefully(t)
	runs := 8
	if testing.Short() {
		runs = 2
	}
	for seed := range uint64(runs) {
		for _, link := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, link), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 6))
				list, want := randomPieces(t, r, link)
				for len(list) < 2 { // there is nothing to stop between
					list, want = randomPieces(t, r, link)
				}
				config, path := t.TempDir(), t.TempDir()+"/t.zdb"
				openAndClose(t, path, config)
				o := ImportOptions{To: "g", AnyOrder: true}
				stop := 1 + r.IntN(len(list)-1)
				appendStopped(t, path, config, []string{"canceled", "failed"}[r.IntN(2)], o, link, list, stop)
				resumeAppend(t, path, config, o, link, list, stop)
				s := at(t, openAt(t, path, linkOptions(t, config)), "")
				for name, values := range want {
					if got := ints(t, s, "g/"+name); !slices.Equal(got, values) {
						t.Errorf("stopped before piece %d: %s holds %v, want %v", stop, name, got, values)
					}
				}
			})
		}
	}
}

func openAndClose(t *testing.T, path, config string) {
	t.Helper()
	db := must.Get(Open(bg, path, linkOptions(t, config)))(t)
	closeChecked(t, db)
}

// Another append does not go on with what is not its own, and what cannot be
// right is not kept.
func TestAppendResumesItsOwn(t *testing.T) {
	carefully(t)
	var list []Piece
	for _, set := range splitConcat(t, refCases(t, "multi_concat")[0], nil) {
		list = append(list, pieceOf(set, Follow{}))
	}
	config, path := t.TempDir(), t.TempDir()+"/t.zdb"
	openAndClose(t, path, config)
	o := ImportOptions{To: "g"}
	appendStopped(t, path, config, "failed", o, true, list, 2)
	with := func(fn func(db *DB)) {
		t.Helper()
		db := must.Get(Open(bg, path, linkOptions(t, config)))(t)
		fn(db)
		closeChecked(t, db)
	}
	o.Resume = true
	with(func(db *DB) {
		must.Get(appendAll(db, "time", true, ImportOptions{To: "g", Resume: true, Validate: ValidateNone}, list[:2]...))(t)
		if list, err := db.Sessions(bg); len(list) != 1 || err != nil {
			t.Fatalf("sessions %v, %v", list, err)
		}
		// It goes on, and finds that the branch has moved meanwhile.
		if _, err := appendAll(db, "time", true, o, list...); !errors.Is(err, txn.ErrConflict) {
			t.Fatalf("after another append: %v", err)
		}
		noSessions(t, db)
	})
	// The coordinates of what was complete still count.
	o = ImportOptions{To: "h"}
	list = append(list, list[1])
	appendStopped(t, path, config, "failed", o, true, list, 3)
	o.Resume = true
	with(func(db *DB) {
		var order *OrderError
		if _, err := appendAll(db, "time", true, o, list...); !errors.As(err, &order) {
			t.Fatalf("a piece that is there twice: %v", err)
		}
		noSessions(t, db)
	})
}

// An append that converts elements, makes a rectilinear grid or stacks its pieces goes on
// like any other, behind what is there and where nothing is.
func TestAppendResumedConverted(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	carefully(t)
	times := func(link bool) ([]Piece, AppendOptions) {
		return pieces(t,
			timesOf("<i4", "days since 2001-01-01", "", packed[int32](t, 0, 1), 0, 2),
			timesOf("<i8", "days since 2001-02-01", "", packed[int64](t, 0, 1, 2), 2, 3),
			timesOf(">i2", "hours since 2001-03-01", "", "\x00\x01\x00\x02", 5, 2),
			timesOf("<f8", "days since 2001-04-01", "", packed(t, 0.25, 0.5, 1.5), 7, 3),
		), AppendOptions{Dim: "time", Link: link}
	}
	for name, sources := range map[string]func() ([]Piece, AppendOptions){
		"times":        func() ([]Piece, AppendOptions) { return times(false) },
		"linked times": func() ([]Piece, AppendOptions) { return times(true) },
		"rectilinear": func() ([]Piece, AppendOptions) {
			return unevenPieces(t, []int64{40, 28, 7, 30}, []int64{31, 28, 3, 10}), AppendOptions{Dim: "time", Rectilinear: true}
		},
		"new dimension": func() ([]Piece, AppendOptions) {
			var sets []smallSet
			for i := range byte(4) {
				sets = append(sets, timesOf("<i4", "days since 2001-01-01", "", packed[int32](t, 0, 1, 2), 3*i, 3))
			}
			return pieces(t, sets...), AppendOptions{Dim: "run", Labels: []string{"1", "2", "3", "5"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			list, how := sources()
			join := func(db *DB, lo, hi int, o ImportOptions, c *counted) error {
				part := how
				if how.Labels != nil {
					part.Labels = how.Labels[lo:hi]
				}
				p, err := PlanAppend(bg, c.pieces(list[lo:hi]), part)
				if err == nil {
					_, err = db.Append(bg, p, o)
				}
				return err
			}
			for _, there := range []int{0, 1} {
				path, config := t.TempDir()+"/t.zdb", t.TempDir()
				contents := func(db *DB) string {
					text := ""
					s := at(t, db, "")
					for n, err := range s.Walk(bg, "") {
						must.Do(t, err)
						if n.Meta().Array {
							a := array(t, s, n.Path())
							text += fmt.Sprintf("%s %v %v %v %q\n", a.Path(), a.Type(), a.Shape(), a.Meta().Grid, textOf(t, a))
						}
					}
					return text
				}
				whole, c := openDB(t, nil), &counted{}
				if there > 0 {
					must.Do(t, join(whole, 0, there, ImportOptions{}, &counted{}))
				}
				must.Do(t, join(whole, there, len(list), ImportOptions{}, c))
				last := c.opens // a piece is written when it was opened so often
				for stop := 1; stop < len(list)-there; stop++ {
					db, err := Open(bg, path, linkOptions(t, config))
					must.Do(t, err)
					if there > 0 && stop == 1 {
						must.Do(t, join(db, 0, there, ImportOptions{}, &counted{}))
					}
					n := last[stop]
					if stop > 1 {
						n = 0
					}
					c := &counted{before: func(i, k int) error {
						left, _ := db.Sessions(bg)
						saved := len(left) > 0 && strings.HasSuffix(left[0].Label, fmt.Sprintf(": %d done", stop))
						if i == stop && (k == n || n == 0 && saved) {
							return errServer
						}
						return nil
					}}
					if err := join(db, there, len(list), ImportOptions{Resume: stop > 1}, c); !errors.Is(err, ErrResumable) {
						t.Fatalf("stopped before piece %d of those after %d: %v", stop, there, err)
					}
					closeChecked(t, db)
				}
				db := openAt(t, path, linkOptions(t, config))
				must.Do(t, join(db, there, len(list), ImportOptions{Resume: true}, &counted{}))
				noSessions(t, db)
				if got, want := contents(db), contents(whole); got != want {
					t.Errorf("after %d pieces:\n%s\nwant\n%s", there, got, want)
				}
			}
		})
	}
}
