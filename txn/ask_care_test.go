package txn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// remotePeer is a peer that reads and writes a database in memory.
func remotePeer(t *testing.T, db *DB) *DB {
	t.Helper()
	o := testOptions(db.fs)
	o.Policy, o.Now = db.opts.Policy, db.opts.Now
	p := NewPeer(db.Dir(), db.Identity(), db.Remote(), o)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// careOf is a database with copies, and how a test uses them.
type careOf struct {
	t        *testing.T
	fs       *vfs.MemFS
	db, to   *DB // in this process
	base     CommitID
	progress int
}

// careSteps are all that can be done for a database, in an order in which each does something.
// A step returns what must not depend on the process.
var careSteps = []struct {
	name string
	do   func(c *careOf, db, to *DB) (any, error)
}{
	{"sync", func(c *careOf, db, _ *DB) (any, error) { return nil, db.Sync(bg) }},
	{"checkpoint", func(c *careOf, db, _ *DB) (any, error) { return nil, db.Checkpoint(bg) }},
	{"checkpoints", func(c *careOf, db, _ *DB) (any, error) {
		list, err := db.Checkpoints()
		return len(list), err
	}},
	{"care errors", func(c *careOf, db, _ *DB) (any, error) {
		c.db.care.Failures.Note("checkpoint", kv.ErrCorrupt)
		defer c.db.care.Failures.Note("checkpoint", nil)
		return fmt.Sprint(db.CareErrors(), errors.Is(db.CareErrors()[0], kv.ErrCorrupt)), nil
	}},
	{"failed checkpoint", func(c *careOf, db, _ *DB) (any, error) {
		c.db.care.Failures.Note("checkpoint", errors.New("no room"))
		defer c.db.care.Failures.Note("checkpoint", nil)
		list, err := db.Checkpoints()
		return len(list), err
	}},
	{"sessions", func(c *careOf, db, _ *DB) (any, error) {
		s, err := c.db.Begin(bg, "main")
		if err != nil {
			return nil, err
		}
		defer s.Abort()
		list, err := db.Sessions(bg)
		return fmt.Sprint(len(list), list[0].Open, list[0].Branch, list[0].ID == s.ID()), err
	}},
	{"abort", func(c *careOf, db, _ *DB) (any, error) {
		s, err := c.db.Begin(bg, "main")
		if err == nil {
			err = s.Savepoint(bg)
		}
		if err != nil {
			return nil, err
		}
		for _, long := range []bool{true, false} { // a session is ended by its age only if it was not used since
			before := time.Time{}
			if long {
				before = time.Unix(1, 0)
			}
			ended, err := db.AbortUnused(bg, s.ID(), before)
			if err != nil || ended == long {
				return nil, fmt.Errorf("an open session: ended %v, %w", ended, err)
			}
		}
		if _, err := s.Get(bg, "k", kv.All()); !errors.Is(err, ErrSessionClosed) {
			return nil, fmt.Errorf("use of a session that was ended: %w", err)
		}
		if err := db.AbortSession(bg, s.ID()); !errors.Is(err, ErrNoRef) {
			return nil, fmt.Errorf("a session that has ended: %w", err)
		}
		return nil, nil
	}},
	{"check", func(c *careOf, db, _ *DB) (any, error) {
		r, err := db.Check(bg, CheckOptions{Payloads: true, Progress: func(CheckProgress) { c.progress++ }})
		r.OrphanPages, r.OrphanBytes, r.OrphanCommits = 0, 0, 0
		return r, err
	}},
	{"clone", func(c *careOf, db, _ *DB) (any, error) {
		return db.Clone(bg, "clone", TransferOptions{Depth: 3, Progress: func(TransferProgress) { c.progress++ }})
	}},
	{"clone a branch", func(c *careOf, db, _ *DB) (any, error) {
		return db.Clone(bg, "branch", TransferOptions{Branch: "side"})
	}},
	{"clone no branch", func(c *careOf, db, _ *DB) (any, error) {
		return db.Clone(bg, "none", TransferOptions{Branch: "none"})
	}},
	{"backup", func(c *careOf, db, _ *DB) (any, error) { return db.Backup(bg, "backup", TransferOptions{}) }},
	{"squash dry", func(c *careOf, db, _ *DB) (any, error) {
		above := must.Get(db.Lookup(bg, must.Get(db.Lookup(bg, mustHead(c.t, c.db)))(c.t).Parents[0]))(c.t)
		squashed, err := db.Rebase(bg, "main", above.Parents[0], RebaseOptions{Squash: true, Message: "one", DryRun: true})
		return squashed.Message, err
	}},
	{"expire by policy dry", func(c *careOf, db, _ *DB) (any, error) {
		return db.Expire(bg, ExpireOptions{Policy: KeepPolicy{Daily: 1}, DryRun: true})
	}},
	{"expire dry", func(c *careOf, db, _ *DB) (any, error) { return db.Expire(bg, ExpireOptions{Keep: 4, DryRun: true}) }},
	{"expire", func(c *careOf, db, _ *DB) (any, error) { return db.Expire(bg, ExpireOptions{Keep: 4}) }},
	{"expire nothing", func(c *careOf, db, _ *DB) (any, error) { return db.Expire(bg, ExpireOptions{}) }},
	{"gc dry", func(c *careOf, db, _ *DB) (any, error) {
		r, err := db.GC(bg, GCOptions{DryRun: true, Explain: true})
		r.Disk = DiskUse{}
		return r, err
	}},
	{"gc", func(c *careOf, db, _ *DB) (any, error) {
		r, err := db.GC(bg, GCOptions{Progress: func(GCProgress) { c.progress++ }})
		r.HeldBytes, r.FreedBytes = 0, 0 // packs in memory have no holes
		return r, err
	}},
	{"gc beside another one", func(c *careOf, db, _ *DB) (any, error) {
		c.db.collecting.Lock()
		defer c.db.collecting.Unlock()
		_, err := db.GC(bg, GCOptions{})
		return nil, err
	}},
	{"backup again", func(c *careOf, db, _ *DB) (any, error) { return db.Backup(bg, "backup", TransferOptions{}) }},
	{"restore", func(c *careOf, db, _ *DB) (any, error) { return db.RestoreTo(bg, "restored", TransferOptions{}) }},
	{"push, planned", func(c *careOf, db, to *DB) (any, error) {
		return db.Push(bg, to, TransferOptions{AllBranches: true, AllTags: true, DryRun: true})
	}},
	{"push", func(c *careOf, db, to *DB) (any, error) {
		return db.Push(bg, to, TransferOptions{AllBranches: true, AllTags: true, Progress: func(TransferProgress) { c.progress++ }})
	}},
	{"push to itself", func(c *careOf, db, _ *DB) (any, error) { return db.Push(bg, db, TransferOptions{}) }},
	{"pull", func(c *careOf, db, to *DB) (any, error) {
		update(c.t, c.db, "main", map[string]string{"x": big("x", 5000)})
		return to.Pull(bg, db, TransferOptions{})
	}},
	{"pull into the first", func(c *careOf, db, to *DB) (any, error) {
		update(c.t, c.to, "side", map[string]string{"y": big("y", 5000), "z": "1"})
		return db.Pull(bg, to, TransferOptions{Refs: []RefSpec{{From: "side"}}})
	}},
	{"diverged", func(c *careOf, db, to *DB) (any, error) {
		update(c.t, c.db, "main", map[string]string{"x": "1"})
		update(c.t, c.to, "main", map[string]string{"x": "2"})
		r, err := db.Pull(bg, to, TransferOptions{})
		if !errors.Is(err, ErrDiverged) {
			return nil, fmt.Errorf("not diverged: %w", err)
		}
		return r, err
	}},
	{"fetch", func(c *careOf, db, to *DB) (any, error) { return db.Fetch(bg, to, TransferOptions{}) }},
	{"no backup", func(c *careOf, db, to *DB) (any, error) {
		_, err := db.BackupTo(bg, to, TransferOptions{})
		return errors.Is(err, ErrNotBackup), err
	}},
	{"damage", func(c *careOf, db, _ *DB) (any, error) {
		damageOf(c.t, c.db, c.fs, "side", "y")
		found := 0
		r, err := db.Check(bg, CheckOptions{Payloads: true, Found: func(p Problem) { found++ }})
		var at *pack.CorruptError
		if len(r.Problems) != 1 || !errors.As(r.Problems[0], &at) || !errors.Is(r.Problems[0], kv.ErrCorrupt) {
			return nil, fmt.Errorf("problems %v, %w", r.Problems, err)
		}
		return fmt.Sprint(found, r.Found, r.Problems[0].Key, r.Problems[0].Refs, r.Problems[0]), err
	}},
	{"copy of damage", func(c *careOf, db, _ *DB) (any, error) {
		_, err := db.Clone(bg, "damaged", TransferOptions{})
		var damage *DamageError
		if !errors.As(err, &damage) || len(damage.Problems) != 1 || damage.Problems[0].Key != "y" {
			return nil, fmt.Errorf("no damage: %w", err)
		}
		return nil, err
	}},
	{"copy without damage", func(c *careOf, db, _ *DB) (any, error) {
		r, err := db.Clone(bg, "damaged", TransferOptions{SkipDamaged: true})
		return fmt.Sprint(r.Holes, len(r.Skipped)), err
	}},
	{"repair from itself", func(c *careOf, db, _ *DB) (any, error) {
		r, err := db.Repair(bg, CheckOptions{Payloads: true})
		return fmt.Sprint(len(r.Done), r.After.Found), err
	}},
	{"repair", func(c *careOf, db, to *DB) (any, error) {
		r, err := db.Repair(bg, CheckOptions{}, to)
		return fmt.Sprint(r.Done, r.Before.Found, r.After.Found), err
	}},
	{"refused base", func(c *careOf, db, _ *DB) (any, error) {
		main, err := db.Head(bg, "main")
		if err != nil {
			return nil, err
		}
		side, err := db.Head(bg, "side")
		if err == nil {
			_, err = db.Merge(bg, "main", side, CommitOptions{Base: main})
		}
		var base *BaseError
		return errors.As(err, &base), err
	}},
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8,}`)
	anyTime = regexp.MustCompile(`[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[^"]*Z?`)
	anySize = regexp.MustCompile(`"(Bytes|PageBytes|Total|Pages|OnlyBytes|LiveBytes|PayloadBytes|PresentBytes|Packs|DeletedPageBytes)":[0-9]+`)
)

// Care and transfers give the same in a peer as in the process that has the database open,
// whichever of the two databases of a transfer that process has open.
func TestCareInPeers(t *testing.T) {
	var want []string
	for _, in := range []string{"neither", "both", "from", "to"} {
		t.Run(in, func(t *testing.T) {
			c := &careOf{t: t, fs: vfs.NewMem()}
			open := map[string]*DB{}
			o := testOptions(c.fs)
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			o.Now = func() time.Time { return now }
			o.Other = func(_ context.Context, dir string) (*DB, func() error, error) {
				if open[dir] == nil {
					return nil, nil, ErrNotDatabase
				}
				p := NewPeer(dir, open[dir].Identity(), open[dir].Remote(), o)
				return p, p.Close, nil
			}
			c.db = openTest(t, o)
			grow(t, c.db, 10, 0)
			head := mustHead(t, c.db)
			c.base = head
			must.Do(t, errors.Join(c.db.CreateTag(bg, "v1", head), c.db.CreateBranch(bg, "side", head)))
			must.Get(c.db.Clone(bg, "to", TransferOptions{}))(t)
			grow(t, c.db, 5, 10)
			var err error
			if c.to, err = Open("to", o); err != nil {
				t.Fatal(err)
			}
			defer closeChecked(t, c.to)
			open["db"], open["to"] = c.db, c.to
			db, to := c.db, c.to
			if in == "both" || in == "from" {
				db = remotePeer(t, db)
			}
			if in == "both" || in == "to" {
				to = remotePeer(t, to)
			}
			var got []string
			for _, s := range careSteps {
				c.progress = 0
				out, err := s.do(c, db, to)
				text := "-"
				if out != nil && !reflect.ValueOf(out).IsZero() {
					b := must.Get(json.Marshal(out))(t)
					text = string(b)
				}
				line := fmt.Sprintf("%s: %s %v, progress %v", s.name, text, err, c.progress > 0)
				line = anySize.ReplaceAllString(anyTime.ReplaceAllString(anyID.ReplaceAllString(line, "ID"), "TIME"), `"$1":N`)
				got = append(got, line)
			}
			if want == nil {
				want = got
				for _, line := range got {
					if name, rest, _ := strings.Cut(line, ":"); strings.Contains(rest, "problems") && !strings.Contains(rest, `"Found":0`) {
						t.Errorf("%s: %s", name, rest)
					}
				}
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("in this process\n\t%s\nin a peer\n\t%s", want[i], got[i])
				}
			}
			if n := len(c.db.kept) + len(c.to.kept); n > 0 {
				t.Errorf("%d moments are kept for transfers that have ended", n)
			}
		})
	}
}

// A version that expires while a peer copies it is not collected before the copy is complete.
func TestKeptForTransfer(t *testing.T) {
	for _, in := range []string{"holder", "peer"} {
		t.Run(in, func(t *testing.T) {
			fs := vfs.NewMem()
			o := testOptions(fs)
			o.PackBytes = 64 << 10
			db := openTest(t, o)
			for i := range 6 {
				update(t, db, "main", map[string]string{"k": big(fmt.Sprint(i), 60_000), fmt.Sprint(i): "x"})
			}
			from := db
			if in == "peer" {
				from = remotePeer(t, db)
			}
			var r *GCReport
			from.opts.transferFault = func(*transfer.Transfer) {
				mustExpire(t, db, ExpireOptions{Keep: 1})
				r = mustGC(t, db)
			}
			must.Get(from.Clone(bg, "copy", TransferOptions{}))(t)
			if r == nil || r.DeletedPages > 0 {
				t.Errorf("collected beside the transfer: %+v", r)
			}
			to := openCopy(t, fs, "copy")
			s := must.Get(to.At(bg, "main~4"))(t)
			if got := contents(t, s); len(got["k"]) != 60_000 {
				t.Errorf("%d bytes", len(got["k"]))
			}
			must.Do(t, s.Close())
			if r := mustGC(t, db); r.DeletedPages == 0 {
				t.Errorf("nothing is collected after the transfer: %+v", r)
			}
		})
	}
}

// endlessKeep is a remote whose process ends while it keeps versions for a transfer.
type endlessKeep struct {
	Remote
	stop chan struct{}
}

func (r endlessKeep) Ask(ctx context.Context, name string, in []byte, progress func([]byte)) ([]byte, error) {
	if name != "keep" {
		return r.Remote.Ask(ctx, name, in, progress)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return r.Remote.Ask(ctx, name, in, progress)
}

// A transfer begins anew when the process ends that keeps the versions for it, and copies the
// source as the next process keeps it.
func TestKeeperEnds(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 5, 0)
	r := endlessKeep{db.Remote(), make(chan struct{})}
	p := NewPeer("db", db.Identity(), r, testOptions(fs))
	defer p.Close()
	tries := 0
	p.opts.transferFault = func(tr *transfer.Transfer) {
		if tries++; tries == 1 {
			r.stop <- struct{}{}
			<-tr.Kept.Ctx.Done()
			update(t, db, "main", map[string]string{"later": "1"})
		}
	}
	must.Get(p.Clone(bg, "copy", TransferOptions{}))(t)
	if tries != 2 {
		t.Errorf("%d tries", tries)
	}
	sameVersions(t, db, openCopy(t, fs, "copy"))
}

// fill sets every exported field below v to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, *n, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[error]() {
			v.Set(reflect.ValueOf(errors.New("told")))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		v.SetInt(int64(*n%3 + 1))
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		v.SetUint(uint64(*n%3 + 1))
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), n)
			}
		}
	}
}

// lost lists the exported fields, but functions, in which a and b differ.
func lost(path string, a, b reflect.Value) (out []string) {
	switch a.Kind() {
	case reflect.Func:
	case reflect.Struct:
		if x, ok := a.Interface().(time.Time); ok {
			if !x.Equal(b.Interface().(time.Time)) {
				out = append(out, path)
			}
			return out
		}
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				out = append(out, lost(path+"."+f.Name, a.Field(i), b.Field(i))...)
			}
		}
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return []string{path}
		}
		for i := range a.Len() {
			out = append(out, lost(path+"[]", a.Index(i), b.Index(i))...)
		}
	case reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			return []string{path}
		} else if !a.IsNil() {
			return lost(path, a.Elem(), b.Elem())
		}
	case reflect.Interface:
		if fmt.Sprint(a.Interface()) != fmt.Sprint(b.Interface()) {
			out = append(out, path)
		}
	default:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			out = append(out, path)
		}
	}
	return out
}

// Requests of peers and their answers lose no field.
func TestRequestsKeepFields(t *testing.T) {
	for _, v := range []any{
		&GCOptions{}, &GCReport{}, &GCProgress{}, &ExpireOptions{}, &ExpireReport{}, &CheckOptions{}, &CheckReport{},
		&CheckProgress{}, &Problem{}, &RepairReport{}, &TransferOptions{}, &TransferReport{}, &TransferProgress{},
		&Checkpoint{}, &CareError{}, &SessionInfo{}, &DamageError{}, &catalog.Hole{}, &care.DamagedAt{}, &repairRequest{},
		&transferRequest{}, &refRequest{}, &combineRequest{}, &commitOf{}, &commitAnswer{}, &RefMove{}, &CommitOptions{}, &RebaseOptions{},
	} {
		n := 0
		fill(reflect.ValueOf(v).Elem(), &n)
		b, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		back := reflect.New(reflect.TypeOf(v).Elem())
		if err := json.Unmarshal(b, back.Interface()); err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		if l := lost("", reflect.ValueOf(v).Elem(), back.Elem()); len(l) > 0 {
			t.Errorf("%T loses %v", v, l)
		}
	}
}

// Only requests that change nothing are repeated, and answered to readers.
func TestChanges(t *testing.T) {
	for _, of := range []struct {
		name, in string
		want     bool
	}{
		{"gc", `{}`, true}, {"gc", `{"DryRun":true}`, false}, {"gc", `x`, true}, {"expire", `{}`, true},
		{"expire", `{"DryRun":true}`, false}, {"check", `{}`, false}, {"transfer", `{}`, true}, {"none", `{}`, true},
		{"pin", `{}`, false}, {"pin", `{"Do":"keep"}`, true}, {"pin", `{"Do":"end"}`, true},
	} {
		if got := Changes(of.name, []byte(of.in)); got != of.want {
			t.Errorf("%s %s: %v", of.name, of.in, got)
		}
	}
	reads := []string{}
	for name := range answers {
		if !Changes(name, []byte(`null`)) {
			reads = append(reads, name)
		}
	}
	slices.Sort(reads)
	if got := strings.Join(reads, ", "); got != "care errors, check, checkpoints, committed, damage, fetch payloads, keep, last care, payloads, pin, protect, sessions, sync" {
		t.Errorf("these change nothing: %s", got)
	}
}

// What is read of an answer prints as it was read.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"Kind":"payload","Key":"k","Err":{"Text":"t","Corrupt":true,"Payload":{"Pack":"000102030405060708090a0b0c0d0e0f","Offset":1}}}`))
	f.Add([]byte(`{"Problems":[{"Kind":"page","Err":null}],"Err":{"Text":"t"}}`))
	f.Add([]byte(`{"Work":"checkpoint","Err":{"Text":"no room"}}`))
	f.Add([]byte(`{"kind":"chunk","path":"a/c/0"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, of := range []func() any{
			func() any { return &Problem{} }, func() any { return &DamageError{} }, func() any { return &CareError{} }, func() any { return &Conflict{} },
		} {
			v, again := of(), of()
			if json.Unmarshal(b, v) != nil {
				continue
			}
			first := must.Get(json.Marshal(v))(t)
			if err := json.Unmarshal(first, again); err != nil {
				t.Fatalf("%s: %v", first, err)
			}
			if second, err := json.Marshal(again); err != nil || string(second) != string(first) {
				t.Errorf("%s, then %s, %v", first, second, err)
			}
		}
	})
}
