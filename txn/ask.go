package txn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Methods of a DB that need the index run in the process that has the database open. A peer
// asks that process: the arguments and the result travel as JSON.
//
//	peer: DB.Expire ──▶ asked ──▶ Remote.Ask ─ ─ ─▶ DB.Answer ──▶ DB.expire

// answer is what the process that has the database open does for a request.
type answer struct {
	run     func(ctx context.Context, db *DB, in []byte, report func(any)) (any, error)
	changes func(in []byte) bool // the database
	lasts   bool                 // see Lasts
}

// answers are the requests that [DB.Answer] knows, by name. init fills it: the functions use it.
var answers map[string]answer

func init() {
	answers = map[string]answer{
		"ref": changing(func(db *DB, ctx context.Context, in refRequest, _ func(any)) (RefMove, error) { return db.ref(ctx, in) }),
		"combine": changing(func(db *DB, ctx context.Context, in combineRequest, _ func(any)) (commitAnswer, error) {
			return in.run(ctx, db)
		}),
		"erase": lasting(unless(func(r eraseRequest) bool { return r.DryRun }, func(db *DB, ctx context.Context, r eraseRequest, _ func(any)) (*EraseReport, error) {
			return db.Erase(ctx, r.Path, r.EraseOptions)
		})),
		"protect": unless(func(r protectRequest) bool { return r.Name == "" }, func(db *DB, ctx context.Context, r protectRequest, _ func(any)) (protections, error) {
			return db.protect(ctx, r)
		}),
		AskAbortSession: changing(func(db *DB, ctx context.Context, id SessionID, _ func(any)) (none, error) {
			return none{}, db.AbortSession(ctx, id)
		}),
		askAbortUnused: changing(func(db *DB, ctx context.Context, in abortRequest, _ func(any)) (bool, error) {
			return db.AbortUnused(ctx, in.ID, in.Before)
		}),
		"pin": unless(func(r pinRequest) bool { return r.Do == "" }, func(db *DB, ctx context.Context, r pinRequest, _ func(any)) ([]*KeptVersion, error) {
			return db.pins(ctx, r)
		}),
		"committed": reading(func(db *DB, ctx context.Context, of commitOf, _ func(any)) (commitAnswer, error) {
			return db.commitOf(ctx, of)
		}),
		"sessions": reading(func(db *DB, ctx context.Context, _ none, _ func(any)) ([]SessionInfo, error) { return db.Sessions(ctx) }),
		"sync":     reading(func(db *DB, ctx context.Context, _ none, _ func(any)) (none, error) { return none{}, db.Sync(ctx) }),
		"checkpoint": changing(func(db *DB, ctx context.Context, _ none, _ func(any)) (none, error) {
			return none{}, db.Checkpoint(ctx)
		}),
		"checkpoints": reading((*DB).answerCheckpoints),
		"care errors": reading(func(db *DB, _ context.Context, _ none, _ func(any)) ([]CareError, error) { return db.CareErrors(), nil }),
		"last care": unless(func(backup bool) bool { return !backup }, func(db *DB, ctx context.Context, backup bool, _ func(any)) ([2]time.Time, error) {
			return db.lastCare(ctx, backup)
		}),
		"gc": lasting(unless(func(o GCOptions) bool { return o.DryRun }, (*DB).answerGC)),
		"expire": unless(func(o ExpireOptions) bool { return o.DryRun }, func(db *DB, ctx context.Context, o ExpireOptions, _ func(any)) (*ExpireReport, error) {
			return db.Expire(ctx, o)
		}),
		"check":          lasting(reading((*DB).answerCheck)),
		"fetch payloads": lasting(reading((*DB).answerFetchPayloads)),
		"repair":         changing((*DB).answerRepair),
		"transfer":       lasting(changing((*DB).answerTransfer)),
		"keep":           lasting(reading((*DB).keepUntil)),
		"damage": reading(func(db *DB, ctx context.Context, d care.Damages, _ func(any)) ([]Problem, error) {
			return db.problemsOf(ctx, d)
		}),
		"payloads": reading(func(db *DB, ctx context.Context, sums []digest.Sum, _ func(any)) ([]catalog.Hole, error) {
			return donor{db}.Payloads(ctx, sums)
		}),
	}
	answers["expire policy"] = answers["expire"] // an earlier program refuses it, and would not see the policy
}

// AskAbortSession is the name of the request that ends a session. Repeating it does no harm: the
// second one is [ErrNoRef].
const AskAbortSession = "session abort"

const askAbortUnused = "session abort unused"

type abortRequest struct {
	ID     SessionID
	Before time.Time
}

// none is the result of a request that returns an error alone.
type none struct{}

// unless makes an answer of a function with arguments and a result of its own, which changes
// the database unless reads is true of the arguments.
func unless[In, Out any](reads func(In) bool, fn func(db *DB, ctx context.Context, in In, report func(any)) (Out, error)) answer {
	return answer{
		run: func(ctx context.Context, db *DB, b []byte, report func(any)) (any, error) {
			var in In
			if err := json.Unmarshal(b, &in); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrRequest, err)
			}
			return fn(db, ctx, in, report)
		},
		changes: func(b []byte) bool {
			var in In
			return json.Unmarshal(b, &in) != nil || !reads(in)
		},
	}
}

func changing[In, Out any](fn func(db *DB, ctx context.Context, in In, report func(any)) (Out, error)) answer {
	return unless(func(In) bool { return false }, fn)
}

func reading[In, Out any](fn func(db *DB, ctx context.Context, in In, report func(any)) (Out, error)) answer {
	return unless(func(In) bool { return true }, fn)
}

func lasting(a answer) answer {
	a.lasts = true
	return a
}

// Lasts reports whether a request of [Remote.Ask] may take as long as the peer wants, or as long
// as the database is large. A process that gives the database up cancels it, and the peer asks the
// next process again: a request that was cancelled has done nothing that the next one does not
// complete. Others take about as long as a commit, or, as a repair, report what only they know.
func Lasts(name string) bool { return answers[name].lasts }

// Changes reports whether a request of [Remote.Ask] may change the database.
func Changes(name string, in []byte) bool {
	a, ok := answers[name]
	return !ok || a.changes(in)
}

// ErrRequest means that a request of a peer cannot be read.
var ErrRequest = errors.New("txn: the request of another process cannot be read")

// Answer does what a peer asks for; see [Remote.Ask]. A request that it does not know is
// errors.ErrUnsupported.
func (db *DB) Answer(ctx context.Context, name string, in []byte, progress func(report []byte)) ([]byte, error) {
	a, ok := answers[name]
	if !ok {
		return nil, fmt.Errorf("txn: request %q: %w by the process that has the database open", name, errors.ErrUnsupported)
	}
	report := func(v any) {
		if b, err := json.Marshal(v); err == nil && progress != nil {
			progress(b)
		}
	}
	out, err := a.run(ctx, db, in, report)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Ask implements [Remote].
func (r remote) Ask(ctx context.Context, name string, in []byte, progress func(report []byte)) ([]byte, error) {
	return r.db.Answer(ctx, name, in, progress)
}

// ask has the other process run a request. report, if not nil, is called with its reports.
func ask[Out, Report any](ctx context.Context, p *peer, name string, in any, report func(Report)) (out Out, err error) {
	b, err := json.Marshal(in)
	switch {
	case err != nil:
	case p.db.opts.ReadOnly && Changes(name, b):
		err = p.db.opts.readOnly()
	case p.answerer == nil:
		err = fmt.Errorf("%s: %w", p.db.dir, ErrPeer)
	default:
		err = p.db.check()
	}
	if err != nil {
		return out, err
	}
	var progress func([]byte)
	if report != nil {
		progress = func(b []byte) {
			var r Report
			if json.Unmarshal(b, &r) == nil {
				report(r)
			}
		}
	}
	if b, err = p.answerer.Ask(ctx, name, b, progress); err == nil {
		err = json.Unmarshal(b, &out)
	}
	return out, err
}

// asked does a request where the index is: here, or in the process that a peer asks.
func asked[In, Out any](ctx context.Context, db *DB, name string, in In, here func(context.Context, In) (Out, error)) (Out, error) {
	if p, ok := db.home.(*peer); ok {
		return ask[Out, none](ctx, p, name, in, nil)
	}
	return here(ctx, in)
}

// combineRequest makes a commit of versions that are there.
type combineRequest struct {
	Do      string // merge, revert, revert to, cherry-pick, rebase, rebase squash or amend
	Branch  string
	Version CommitID
	Parent  int
	Commit  CommitOptions
	Rebase  RebaseOptions
}

// commitAnswer is a commit, and the conflicts that choices decided.
type commitAnswer struct {
	ID      CommitID
	Record  []byte
	Decided []decision
}

type decision struct {
	Conflict Conflict
	Choice   Choice
}

// maxDecided bounds the decisions in an answer.
const maxDecided = 1000

func (r *combineRequest) run(ctx context.Context, db *DB) (a commitAnswer, err error) {
	decided := func(c Conflict, choice Choice) {
		if len(a.Decided) < maxDecided {
			a.Decided = append(a.Decided, decision{c, choice})
		}
	}
	r.Commit.Decided, r.Rebase.Decided = decided, decided
	c, err := db.home.combine(ctx, *r)
	if err != nil {
		return commitAnswer{}, err
	}
	a.ID, a.Record = c.ID, EncodeCommit(c)
	return a, nil
}

// do makes the commit here.
func (r *combineRequest) do(ctx context.Context, db *DB) (*Commit, error) {
	switch r.Do {
	case "merge":
		return db.merge(ctx, r.Branch, r.Version, r.Commit)
	case "revert":
		return db.revert(ctx, r.Branch, r.Version, r.Parent, r.Commit)
	case "revert to":
		return db.revertTo(ctx, r.Branch, r.Version, r.Commit)
	case "cherry-pick":
		return db.cherryPick(ctx, r.Branch, r.Version, r.Parent, r.Commit)
	case "rebase", "rebase squash":
		return db.rebase(ctx, r.Branch, r.Version, r.Rebase)
	case "amend":
		return db.amend(ctx, r.Branch, r.Commit)
	}
	return nil, fmt.Errorf("%w: %q combines no versions", ErrRequest, r.Do)
}

// combine has the other process make a commit of versions that are there.
func (p *peer) combine(ctx context.Context, r combineRequest) (*Commit, error) {
	decided := r.Commit.Decided
	if strings.HasPrefix(r.Do, "rebase") {
		decided = r.Rebase.Decided
	}
	if r.Commit.Author == "" && r.Do != "amend" {
		r.Commit.Author = p.db.opts.Author
	}
	a, err := ask[commitAnswer, none](ctx, p, "combine", r, nil)
	if err != nil {
		return nil, err
	}
	if decided != nil {
		for _, d := range a.Decided {
			decided(d.Conflict, d.Choice)
		}
	}
	return DecodeCommit(a.ID, a.Record)
}
