package txn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// A bucket that is read by its URL is a lazy clone in a directory of the user, which follows the bucket. Nothing else is written to it:
//
//	PARENT/<hash of the URL and server>-<identity>    so another bucket at the same URL is another clone

// BucketCacheOptions say where the clone of a bucket is, and how it is made. The files are those of the operating system.
type BucketCacheOptions struct {
	Bucket BucketOptions
	Failed error  // why the store of Bucket could not be opened
	Parent string // has the clones of all buckets, and is for this user alone
	At     string // tells buckets with one URL apart, such as those of two servers
	// Offline reports whether an error means that the bucket cannot be reached now: then the clone is used as it is.
	Offline func(error) bool
	// Wait bounds how long the bucket is waited for if there is a clone; 0 is no bound.
	Wait time.Duration
}

// BucketCache is a lazy clone that follows a bucket.
type BucketCache struct {
	Dir  string
	Note string // for the user: the clone is not as the bucket is now, or the bucket went back
	b    *Bucket
}

// CachedBucket returns the directory of the newest clone of the bucket at a URL, "" if the bucket has no clone in parent. at is
// [BucketCacheOptions].At.
func CachedBucket(parent, url, at string) string {
	list, _ := filepath.Glob(filepath.Join(escapeGlob(parent), cachePrefix(url, at)+"*", FormatFile))
	var newest string
	var last time.Time
	for _, file := range list {
		dir := filepath.Dir(file)
		if s, err := os.Stat(filepath.Join(bucket.Dir(index.DefaultFS, dir, url), "state")); err == nil && (newest == "" || s.ModTime().After(last)) {
			newest, last = dir, s.ModTime()
		} else if newest == "" {
			newest = dir
		}
	}
	return newest
}

func cachePrefix(url, at string) string {
	if at != "" {
		url += " " + at
	}
	return digest.Of([]byte(url)).String()[:16] + "-"
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// OpenBucketCache finds the clone of a bucket, or makes it. It reads the manifest, with one request.
func OpenBucketCache(ctx context.Context, o BucketCacheOptions, opts *Options) (*BucketCache, error) {
	fs, name := index.DefaultFS, o.Bucket.Name
	c := &BucketCache{Dir: CachedBucket(o.Parent, name, o.At)}
	err := o.Failed
	if err == nil {
		asked, done := ctx, func() {}
		if c.Dir != "" && o.Wait > 0 {
			asked, done = context.WithTimeout(ctx, o.Wait)
		}
		c.b, err = openBucket(asked, fs, c.Dir, o.Bucket)
		done()
	}
	if errors.Is(err, depot.ErrOther) {
		c.Dir = ""
		c.b, err = openBucket(ctx, fs, "", o.Bucket)
	}
	if err != nil {
		if c.Dir == "" || ctx.Err() != nil {
			return nil, err
		}
		if !o.Offline(err) && !errors.Is(err, context.DeadlineExceeded) {
			if errors.Is(err, depot.ErrGone) || errors.Is(err, depot.ErrNone) {
				err = fmt.Errorf("%s: %w now; what was read of the one that was there is in the database %s", name, depot.ErrNone, c.Dir)
			}
			return nil, err
		}
		c.Note = fmt.Sprintf("%v: what is known of the remote is shown, as of %s", err, c.known(name))
		return c, nil
	}
	own := filepath.Join(o.Parent, cachePrefix(name, o.At)+c.b.d.Manifest().ID)
	if c.Dir != own {
		if c.Dir, err = own, os.MkdirAll(o.Parent, 0o700); err != nil {
			return nil, err
		}
		if err := c.make(ctx, &o, opts); err != nil {
			return nil, err
		}
	}
	c.Note = c.b.note
	if c.b.state.Mirrored == c.b.sum() {
		c.b = nil
	}
	return c, nil
}

// make makes the clone, unless it is there.
func (c *BucketCache) make(ctx context.Context, o *BucketCacheOptions, opts *Options) error {
	alone, err := index.LockFileOf(ctx, index.DefaultFS, c.Dir+".lock") // against another process that makes it
	if err != nil {
		return err
	}
	defer func(l io.Closer) { _ = l.Close() }(alone)
	if exists(index.DefaultFS, filepath.Join(c.Dir, FormatFile)) {
		c.b, err = openBucket(ctx, index.DefaultFS, c.Dir, o.Bucket)
		return err
	}
	to := opts.withDefaults()
	to.FS, to.ReadOnly, to.Durability, to.CheckpointCommits, to.Locked = index.DefaultFS, false, DurabilitySync, -1, nil
	_, err = c.b.clone(ctx, c.Dir, to, TransferOptions{Lazy: true}, true)
	if err == nil {
		err = os.Chmod(c.Dir, 0o700)
	}
	if err == nil {
		c.b.mirrored()
	}
	return err
}

// known is the time when the bucket was read last.
func (c *BucketCache) known(url string) string {
	s, err := os.Stat(filepath.Join(bucket.Dir(index.DefaultFS, c.Dir, url), "state"))
	if err != nil {
		return "an unknown time"
	}
	return s.ModTime().Format(time.RFC3339)
}

// Behind reports whether the bucket has refs that the clone has not.
func (c *BucketCache) Behind() bool { return c.b != nil }

// Follow brings the refs of a clone, which is open as db, to those of the bucket.
func (c *BucketCache) Follow(ctx context.Context, db *DB) error {
	return db.FollowJust(ctx, c.b)
}

// FollowJust is [BucketCache.Follow] to what was read when b was opened, just now.
func (db *DB) FollowJust(ctx context.Context, b *Bucket) error {
	b.opened = false
	_, err := db.PullFrom(ctx, b, TransferOptions{})
	return err
}

// follows returns the options of a pull by which a clone follows its bucket. Nothing else is pulled into one.
func (db *DB) follows(b *Bucket, op string, o TransferOptions) (TransferOptions, error) {
	if b.name != db.Caches() || op != transfer.OpPull {
		return o, db.changeable()
	}
	return TransferOptions{AllBranches: true, AllTags: true, Force: true, Prune: true, DryRun: o.DryRun, Progress: o.Progress}, nil
}

// Caches returns the URL of the bucket whose [BucketCache] the database is, "" for other databases.
func (db *DB) Caches() string {
	if db.away == nil || !db.away.At.Cached {
		return ""
	}
	return db.away.At.URL
}

// newest reads the manifest anew if another process has read a newer one, and reports whether the clone has its refs.
func (b *Bucket) newest(ctx context.Context) (mirrored bool, err error) {
	s := b.state.Reread()
	if now := b.d.Manifest(); !b.back && s.Known != nil && s.Known.ID == now.ID && s.Known.Generation > now.Generation {
		err = b.d.Refresh(ctx)
	}
	if mirrored = s.Mirrored == b.sum(); mirrored {
		b.state.Mirrored = s.Mirrored
	}
	return mirrored, err
}

// sum names the manifest.
func (b *Bucket) sum() string { return fmt.Sprint(b.d.State().Sum) }

// mirrored notes that the clone has the refs of the manifest. If the bucket went back, that was said, and is accepted.
func (b *Bucket) mirrored() {
	b.state.Mirrored = b.sum()
	if known := b.d.State(); b.back {
		b.state.Known = &known
	}
	b.state.Save()
}

// changeable returns why the contents of the database cannot be changed.
func (db *DB) changeable() error {
	url := db.Caches()
	if err := db.writable(); err != nil || url == "" {
		return err
	}
	return fmt.Errorf("%w: it shows the remote %s; to write, make a clone with \"zarrdb clone %s DIR --lazy\", commit there, and push", kv.ErrReadOnly, url, url)
}
