package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/depot"
	"github.com/zarrdb/zarrdb/txn"
)

// RemoteCache is a lazy clone of a remote in the cache of this user, which has what was read through the URL of the remote. It
// follows the remote, and nothing else is written to it.
type RemoteCache struct {
	// Dir is the database.
	Dir string
	// Note is for the user: the cache is not as the remote is now, or the remote went back. It is empty otherwise.
	Note string

	clone *txn.BucketCache
	env   *source.Env
}

// remoteCaches returns the directory above the caches of all remotes.
func remoteCaches() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "zarrdb", "remotes"), err
}

// RemoteCacheDir returns the directory of the cache of the remote at a URL, "" if this user has no such cache.
func RemoteCacheDir(url string) string {
	parent, err := remoteCaches()
	if err != nil {
		return ""
	}
	u, err := zurl.Parse(url)
	if err != nil {
		return ""
	}
	return txn.CachedBucket(parent, remoteName(u), source.ServerOf(url))
}

// outside returns an error if a URL is that of a version or node in a remote.
func outside(ctx context.Context, url string, o *Options) error {
	for i := strings.Index(url, "://") + 3; i < len(url); i++ {
		if url[i] != '@' && url[i] != ':' {
			continue
		}
		if is, _ := HasRemote(ctx, url[:i], o); is {
			return fmt.Errorf("%s: a remote is at %s, and %q would be a version or node in it: leave that out, and name branches and tags behind the URL: %w",
				zurl.Redact(url), zurl.Redact(url[:i]), url[i:], errors.ErrUnsupported)
		}
	}
	return nil
}

func remoteName(u zurl.URL) string { return strings.TrimSuffix(u.Redacted(), "/") }

// ErrNoRemote means that no remote is at a URL.
var ErrNoRemote = depot.ErrNone

// HasRemote asks whether a remote is at a URL. An error means that this could not be found out.
func HasRemote(ctx context.Context, url string, o *Options) (bool, error) {
	opts := o.withDefaults()
	env := opts.env()
	at, err := bucketAt(ctx, env, url, "", false)
	if err != nil {
		return false, env.Close()
	}
	_, err = depot.Open(ctx, at.Store, nil)
	if errors.Is(err, ErrNoRemote) || errors.Is(err, kv.ErrCorrupt) { // a plain store may have a file of that name
		return false, env.Close()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", at.Name, err)
	}
	return err == nil, errors.Join(err, env.Close())
}

// OpenRemoteCache finds the cache of a remote, or makes it, and reads the manifest of the remote with one request. If the remote
// cannot be reached, the Note says so. Close it when done; it is opened as the database in Dir.
func OpenRemoteCache(ctx context.Context, url string, o *Options) (*RemoteCache, error) {
	parent, err := remoteCaches()
	if err == nil {
		err = os.MkdirAll(parent, 0o700)
	}
	if info, serr := os.Stat(parent); err == nil && serr == nil && info.Mode().Perm() != 0o700 {
		err = os.Chmod(parent, 0o700)
	}
	if err != nil {
		return nil, uncached(url, err)
	}
	opts := o.withDefaults()
	env := opts.env()
	c := txn.BucketCacheOptions{Parent: parent, At: source.ServerOf(url), Offline: source.Unreachable, Wait: remoteWait}
	c.Bucket, c.Failed = bucketAt(ctx, env, url, parent, false)
	to := opts.txn(ctx, env.Resolver("", nil))
	to.Bucket = openBucket(env, parent)
	cache, err := txn.OpenBucketCache(ctx, c, &to)
	if err != nil {
		return nil, uncached(url, errors.Join(err, env.Close()))
	}
	return &RemoteCache{cache.Dir, cache.Note, cache, env}, nil
}

// uncached is the error of a remote that cannot be read because its cache cannot be made.
func uncached(url string, err error) error {
	if errors.As(err, new(*fs.PathError)) || errors.Is(err, txn.ErrNoLocks) {
		err = fmt.Errorf("cache of %s: %w; set XDG_CACHE_HOME to a directory of yours that can be written, or use \"zarrdb clone %[1]s DIR --lazy\"", zurl.Redact(url), err)
	}
	return err
}

// Behind reports whether the remote has branches or tags that the cache has not.
func (c *RemoteCache) Behind() bool { return c.clone.Behind() }

// Follow brings the refs of a cache, which is open as db, to those of the remote. What the network does not allow now is added to the Note.
func (c *RemoteCache) Follow(ctx context.Context, db *DB) error {
	err := c.clone.Follow(ctx, db.store)
	if err != nil && ctx.Err() == nil && source.Unreachable(err) {
		c.Note, err = err.Error(), nil
	}
	return err
}

// Close closes the connection to the remote.
func (c *RemoteCache) Close() error { return c.env.Close() }

// remoteWait bounds how long a remote is waited for whose contents are known.
const remoteWait = 10 * time.Second

// Follow brings a database that was opened by the URL of a remote to what is there now, unless it was opened or followed less than a
// time ago. It does nothing for others.
func (db *DB) Follow(ctx context.Context, every time.Duration) error {
	if db.holder != nil {
		db = db.holder
	}
	url := db.store.Caches()
	last, now := db.followed.Load(), time.Now().UnixNano()
	if url == "" || now-last < int64(every) || !db.followed.CompareAndSwap(last, now) {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, remoteWait)
	r, err := db.Remote(asked, url, nil)
	cancel()
	if err != nil {
		return err
	}
	return errors.Join(db.store.FollowJust(ctx, r.b), r.Close())
}

// remoteDir returns the file URL of a directory that stands for a bucket, or the directory itself.
func remoteDir(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, txn.FormatFile))
	if err == nil && strings.HasPrefix(string(b), "zarrdb remote ") {
		if u, err := zurl.File(dir); err == nil {
			return u.String()
		}
	}
	return dir
}
