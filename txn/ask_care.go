package txn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/care"
)

// Care of a database takes place where its index is. A transfer runs where its destination is
// written, and reads the source as any other process does:
//
//	GC, Expire, Check, Repair, Checkpoint ──▶ ask
//	Clone, Backup, Restore to a directory ──▶ here, from a peer too
//	Push, Pull, Fetch, BackupTo           ──▶ here, or ask the process that has the destination
//	                                          open, which opens the source by its directory

// careEvent tells a peer about care that is under way.
type careEvent[Report, Progress any] struct {
	Progress *Progress `json:",omitempty"`
	Found    *Problem  `json:",omitempty"`
	Report   *Report   `json:",omitempty"` // at the end, and with an error too
}

// maxFound bounds the problems that are told one by one; the report counts all of them.
const maxFound = 10_000

// careTeller passes events on to a peer.
type careTeller[Report, Progress any] struct {
	report func(any)
	found  int
}

func (t *careTeller[Report, Progress]) onProgress(p Progress) {
	t.report(careEvent[Report, Progress]{Progress: &p})
}

func (t *careTeller[Report, Progress]) onFound(p Problem) {
	if t.found++; t.found <= maxFound {
		t.report(careEvent[Report, Progress]{Found: &p})
	}
}

func (t *careTeller[Report, Progress]) end(r *Report, err error) (none, error) {
	if r != nil {
		t.report(careEvent[Report, Progress]{Report: r})
	}
	return none{}, err
}

// cared is asked for a request with reports.
func cared[In, Report, Progress any](ctx context.Context, db *DB, name string, in In, progress func(Progress), found func(Problem), here func(context.Context, In) (*Report, error)) (*Report, error) {
	if p, ok := db.home.(*peer); ok {
		return careFor[Report](ctx, p, name, in, progress, found)
	}
	return here(ctx, in)
}

// careFor has the other process do what name says. The report is not nil.
func careFor[Report, Progress any](ctx context.Context, p *peer, name string, in any, progress func(Progress), found func(Problem)) (*Report, error) {
	r := new(Report)
	told := map[string]bool{} // a request that was begun again finds the same
	_, err := ask[none](ctx, p, name, in, func(e careEvent[Report, Progress]) {
		if e.Progress != nil && progress != nil {
			progress(*e.Progress)
		}
		if e.Found != nil && found != nil {
			if b, err := json.Marshal(e.Found); err != nil || !told[string(b)] {
				told[string(b)] = true
				found(*e.Found)
			}
		}
		if e.Report != nil {
			r = e.Report
		}
	})
	return r, err
}

func (db *DB) answerGC(ctx context.Context, o GCOptions, report func(any)) (none, error) {
	t := careTeller[GCReport, GCProgress]{report: report}
	o.Progress = t.onProgress
	return t.end(db.GC(ctx, o))
}

func (db *DB) answerCheck(ctx context.Context, o CheckOptions, report func(any)) (none, error) {
	t := careTeller[CheckReport, CheckProgress]{report: report}
	o.Progress, o.Found = t.onProgress, t.onFound
	return t.end(db.Check(ctx, o))
}

// repairRequest is a repair from the databases in directories.
type repairRequest struct {
	Options CheckOptions
	From    []string
}

func (db *DB) answerRepair(ctx context.Context, in repairRequest, report func(any)) (_ none, err error) {
	t := careTeller[RepairReport, CheckProgress]{report: report}
	in.Options.Progress, in.Options.Found = t.onProgress, t.onFound
	var from []*DB
	for _, dir := range in.From {
		src, done, err := db.other(ctx, dir)
		if err != nil {
			return none{}, err
		}
		defer func() { err = errors.Join(err, done()) }()
		from = append(from, src)
	}
	return t.end(db.Repair(ctx, in.Options, from...))
}

func (p *peer) repair(ctx context.Context, o CheckOptions, from []*DB) (*RepairReport, error) {
	in := repairRequest{Options: o}
	for _, db := range from {
		dir, err := db.absolute()
		if err != nil {
			return nil, err
		}
		in.From = append(in.From, dir)
	}
	return careFor[RepairReport](ctx, p, "repair", in, o.Progress, o.Found)
}

// transferRequest is a transfer from the database in a directory.
type transferRequest struct {
	Do      string // push, pull, fetch or backup
	From    string
	Options TransferOptions
}

func (db *DB) answerTransfer(ctx context.Context, in transferRequest, report func(any)) (_ none, err error) {
	t := careTeller[TransferReport, TransferProgress]{report: report}
	in.Options.Progress = t.onProgress
	src, done, err := db.other(ctx, in.From)
	if err != nil {
		return none{}, fmt.Errorf("%s: %w", in.Do, err)
	}
	defer func() { err = errors.Join(err, done()) }()
	return t.end(db.home.transfer(ctx, src, in.Do, in.Options))
}

// transfer has the process that has the destination open read a source.
func (p *peer) transfer(ctx context.Context, from *DB, do string, o TransferOptions) (*TransferReport, error) {
	dir, err := from.absolute()
	if err != nil {
		return &TransferReport{}, err
	}
	from.lendTo(p.Source)
	return careFor[TransferReport](ctx, p, "transfer", transferRequest{do, dir, o}, o.Progress, nil)
}

// other opens the database in a directory, which another process named.
func (db *DB) other(ctx context.Context, dir string) (*DB, func() error, error) {
	if db.opts.Other == nil {
		return nil, nil, fmt.Errorf("open %s: %w by the process that has %s open", dir, errors.ErrUnsupported, db.dir)
	}
	from, done, err := db.opts.Other(ctx, dir)
	if err == nil && from.away != nil {
		from.away.AskAs(bucket.AskerOf(ctx))
	}
	return from, done, err
}

// absolute is the directory for another process of this machine.
func (db *DB) absolute() (string, error) {
	if db.fs != index.DefaultFS {
		return db.dir, nil
	}
	return filepath.Abs(db.dir)
}

func (db *DB) answerCheckpoints(context.Context, none, func(any)) (checkpointsAnswer, error) {
	list, err := db.Checkpoints()
	return checkpointsAnswer{list, care.Damage{Err: err}}, nil
}
