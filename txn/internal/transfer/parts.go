package transfer

import (
	"context"
	"errors"
	"iter"

	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// From is the database that versions are carried from. Another process may have it open.
type From struct {
	Dir   string
	Packs *pack.Store
	Tree  *tree.Tree
	SourceDB
	Fault func(*Transfer) // tests break what was found to copy; else nil
	// Away opens the bucket that has the payloads which are not in Packs; nil if all are there.
	Away func(ctx context.Context) (*depot.Depot, error)
	// AwayFailed is the error of a read from there.
	AwayFailed func(ctx context.Context, err error) error
	// HistoryAlone says that the destination is a lazy clone of the bucket that has the contents.
	HistoryAlone bool

	bucket *bucketSource // see FromBucket
}

// SourceDB is what a transfer asks of the database.
type SourceDB interface {
	// Keep keeps all versions that have not expired from being collected.
	Keep(ctx context.Context) (*Kept, error)
	Lookup(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error)
	// Version is Lookup of a version whose content is wanted: it has not expired.
	Version(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error)
	Pages(ctx context.Context, names []tree.Name) iter.Seq2[index.Page, error]
	RightPayload(ctx context.Context, a pack.Address, sum digest.Sum) ([]byte, error)
	// Problems finds the keys and versions of payloads that are damaged.
	Problems(ctx context.Context, d care.Damages) ([]care.Problem, error)
}

// To is the database that versions are carried to, which this process has open. It is not
// collected meanwhile.
type To struct {
	*care.Parts
	Incarnation [8]byte
	Tree        *tree.Tree
	Stored      tree.Pages // that are in the index
	Committed   tree.Pages // some of which may wait to be written
	DestinationDB

	bucket *Bucket // see Send
}

// knower is an optional interface of a [DestinationDB] whose versions are not in To.Index. Known is as Transfer.known.
type knower interface {
	Known(ctx context.Context, id catalog.CommitID) (has, gone bool, err error)
}

// DestinationDB is what a transfer asks of the database.
type DestinationDB interface {
	Lookup(ctx context.Context, id catalog.CommitID) (*catalog.Commit, error)
	// Heads are all refs under their stored names, Head one of them.
	Heads() []catalog.Ref
	Head(ref string) (catalog.CommitID, bool)
	Protection(ref string) catalog.Protection
	// Publish calls fn, and Write with the change in the end, while no ref moves. What was
	// committed before is in the index.
	Publish(ctx context.Context, fn func() error) error
	Write(ctx context.Context, c *LastBatch) error
}

// LastBatch is the last batch of a transfer.
type LastBatch struct {
	Batch    *index.Batch
	Moves    []catalog.RefMove
	Mirrored bool // the batch has the reflog of the moves
}

// Kept is a moment of a database whose versions no collection removes.
type Kept struct {
	Records
	Ctx     context.Context // ends when the versions are not kept any more
	Release func()
	// Heads and Expired are refs and expired versions if there are no Records.
	Heads   map[string]catalog.CommitID
	Expired map[catalog.CommitID]bool
	// Ask, if not nil, asks the process that keeps the versions. The error is ErrNotKept if it does not keep them.
	Ask func(ctx context.Context) error
}

// Records are the records of an index, in this process or in another one.
type Records interface {
	catalog.Getter
	catalog.Scanner
}

// ErrNotKept means that the process which kept the versions of a transfer has given the database
// up. Transfers then begin anew.
var ErrNotKept = errors.New("txn: the process that kept the versions of the source has ended; the same call goes on with the transfer")

// lost reports whether the versions are not kept any more, after something has failed. Of
// two errors, that of the request "keep" may come later.
func (k *Kept) lost(ctx context.Context) bool {
	if errors.Is(context.Cause(k.Ctx), ErrNotKept) {
		return true
	}
	return k.Ask != nil && ctx.Err() == nil && errors.Is(k.Ask(ctx), ErrNotKept)
}
