package engine

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Stats has counts and sizes of a database.
type Stats struct {
	Branches int `json:"branches"`
	Tags     int `json:"tags"`
	Sessions int `json:"sessions"`
	// Kept are the versions that are kept by name.
	Kept []KeptInfo `json:"kept,omitempty"`
	// Commits that the version descends from, itself included.
	Commits int64 `json:"commits"`

	// Of the version: its nodes, its keys by the location of their bytes, and
	// the total of these bytes.
	Groups int64 `json:"groups"`
	Arrays int64 `json:"arrays"`
	// Nodes whose metadata cannot be read.
	Unreadable int64 `json:"unreadable"`
	Keys       int64 `json:"keys"`
	Inline     int64 `json:"inline"`
	Native     int64 `json:"native"`
	Virtual    int64 `json:"virtual"`
	Bytes      int64 `json:"bytes"`

	// Blocks on disk, of the whole directory; DiskBytes is the sum.
	IndexBytes      int64 `json:"index_bytes"`
	PackBytes       int64 `json:"pack_bytes"`
	Packs           int   `json:"packs"`
	CheckpointBytes int64 `json:"checkpoint_bytes"`
	DiskBytes       int64 `json:"disk_bytes"`
	// Memory is the memory of this process, for all its open databases.
	Memory MemoryUse `json:"memory"`
	// Cache is the cache of decoded chunks of the database in this process.
	Cache CacheStats `json:"cache"`
	// CareErrors are the errors of background work that has not succeeded since.
	CareErrors []string `json:"care_errors,omitempty"`
}

// VersionStats says what a commit added to the database.
type VersionStats struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
	// Keys that were set or removed since the first parent, and the bytes of those that were set: without those that are
	// linked, and without equal bytes that the database had elsewhere.
	Keys  int64 `json:"keys"`
	Bytes int64 `json:"bytes"`
	// Expired says that this or the parent has expired, so that neither is known.
	Expired bool `json:"expired,omitempty"`
}

// VersionStats yields what each commit that a version descends from added, newest first. The cost is that of the changes.
func (db *DB) VersionStats(ctx context.Context, rev string) iter.Seq2[VersionStats, error] {
	return func(yield func(VersionStats, error) bool) {
		for c, err := range db.Log(ctx, rev) {
			if err != nil {
				yield(VersionStats{}, err)
				return
			}
			v := VersionStats{ID: c.ID.String(), Time: c.Time, Message: c.Message}
			if len(c.Parents) > 0 {
				for change, err := range db.store.Diff(ctx, c.Parents[0], c.ID, "") {
					if errors.Is(err, txn.ErrExpired) {
						v.Expired = true
						break
					} else if err != nil {
						yield(v, err)
						return
					}
					if v.Keys++; change.New != nil && change.New.Kind != "virtual" {
						v.Bytes += change.New.Length
					}
				}
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Stats counts the contents of a version and of the database directory. It reads
// the index of the version, no payloads.
func (db *DB) Stats(ctx context.Context, rev string) (*Stats, error) {
	s, err := db.At(ctx, rev)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	branches, tags, err := db.Refs(ctx)
	if err != nil {
		return nil, err
	}
	out := &Stats{Branches: len(branches), Tags: len(tags)}
	sessions, err := db.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	out.Sessions = len(sessions)
	kept, err := db.KeptVersions(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // by a process of an earlier version
		return nil, err
	}
	for _, l := range kept {
		out.Kept = append(out.Kept, KeptInfo{l.Name, l.Commit.String(), l.Time, l.Note})
	}
	for _, err := range db.store.Log(ctx, s.Commit().ID) {
		if err != nil {
			return nil, err
		}
		out.Commits++
	}
	for v, err := range s.Values(ctx, "") {
		if err != nil {
			return nil, err
		}
		out.count(v)
	}
	for n, err := range s.Walk(ctx, "") {
		if errors.Is(err, zarr.ErrNotFound) {
			break // the record does not exist
		}
		if errors.Is(err, zarr.ErrMetadata) {
			out.Unreadable++
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, ok := n.Array(); ok {
			out.Arrays++
		} else {
			out.Groups++
		}
	}
	use := db.DiskUse()
	out.IndexBytes, out.PackBytes, out.Packs = use.IndexBytes, use.PackBytes, use.Packs
	out.CheckpointBytes, out.DiskBytes = use.CheckpointBytes, use.Total()
	out.Memory, out.Cache = UsedMemory(), db.CacheStats()
	for _, e := range db.CareErrors() {
		out.CareErrors = append(out.CareErrors, e.Error())
	}
	return out, nil
}

// KeptInfo describes a version that is kept by name.
type KeptInfo struct {
	Name   string    `json:"name"`
	Commit string    `json:"commit"`
	Since  time.Time `json:"since"`
	// By is the job or process that needs it.
	By string `json:"by"`
}

func (s *Stats) count(v txn.KeyValue) {
	s.Keys++
	s.Bytes += max(v.Length, 0)
	switch v.Kind {
	case "inline":
		s.Inline++
	case "native":
		s.Native++
	case "virtual":
		s.Virtual++
	}
}

// MemoryUse is the memory that a process takes for databases.
type MemoryUse = budget.Use

// UsedMemory returns the memory that this process takes for databases, and its bound; see
// [Options.MemoryBytes].
func UsedMemory() MemoryUse { return budget.Used() }

// CacheStats describes the cache of decoded chunks of a database.
type CacheStats = cache.Stats

// CacheStats returns the counts and the size of the cache of decoded chunks;
// zero if it is off.
func (db *DB) CacheStats() CacheStats { return db.cache.Stats() }
