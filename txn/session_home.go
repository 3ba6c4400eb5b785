package txn

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// sessionHome is where the changes of a session are: in this process (own), or in the process that
// has the database open (there). Methods that do what a method of [Session] says have its name.
type sessionHome interface {
	lookup(ctx context.Context, key string) (tree.Value, error)
	set(ctx context.Context, key string, value []byte) error
	setIf(ctx context.Context, key string, value []byte, want Expect) (kv.ID, error)
	setVirtual(ctx context.Context, key string, v tree.Value) error
	remove(ctx context.Context, key string) error
	guard(ctx context.Context, paths []string) error

	// store puts bytes into a pack.
	store(ctx context.Context, owner pack.Owner, value []byte, sum digest.Sum) (tree.Value, error)
	// keeps reports whether the payload of v, whose content hash is that of value, can stand
	// for value: it is read, and healed if it is damaged. Otherwise value must be stored anew.
	keeps(ctx context.Context, v tree.Value, value []byte) (bool, error)

	virtualBeside(ctx context.Context, key string) (bool, error)
	// roots returns the roots of the session with every write in them.
	roots(ctx context.Context) (Roots, error)
	// below returns a working root that has every write below a prefix, if there is one
	// without a flush or a request. dropped notes that its pages could not be read.
	below(prefix string) (root tree.Root, ok bool)
	dropped(ctx context.Context, err error) error
	// change replaces the working root by what fn makes of it. entry is what the log of the
	// session has of it; without one, a session with a log makes a savepoint.
	change(ctx context.Context, entry *catalog.Entry, fn func(root tree.Root) (tree.Root, error)) error

	log(ctx context.Context) error
	save(ctx context.Context) error
	refresh(ctx context.Context, choices []PathChoice) error
	fork(ctx context.Context) (*Session, error)
	join(ctx context.Context, f *Session, choices []PathChoice) error
	commit(ctx context.Context, o CommitOptions) (*Commit, error)
	abort() error
	close()
	asTx() Tx
}

// own is the home of a session whose changes are in this process.
type own struct{ *Session }

func (s own) setVirtual(ctx context.Context, key string, v tree.Value) error {
	return s.put(ctx, namespace.Edit{Key: key, Value: v}, nil)
}

func (s own) remove(ctx context.Context, key string) error {
	return s.put(ctx, namespace.Edit{Key: key, Delete: true}, nil)
}

func (s own) below(prefix string) (root tree.Root, ok bool) {
	return s.work, !s.bufDirs.mayHold(prefix)
}

func (s own) dropped(_ context.Context, err error) error { return err }
func (s own) asTx() Tx                                   { return sessionTx(s) }
