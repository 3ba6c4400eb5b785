package txn

import "github.com/zarrdb/zarrdb/txn/internal/namespace"

// Types of keys and metadata documents.
type (
	// Policy reads and merges the documents that Zarr puts beside its chunks. The
	// engine supplies it; internal/namespace/policy.go documents its methods.
	Policy = namespace.Policy
	// Form is a way to write chunk coordinates as a key: Prefix, then Rank decimal
	// numbers with Sep between them. "c/" '/' 3 is c/0/1/2.
	Form = namespace.Form
	// Structure is the part of an array's metadata that its chunks depend on.
	Structure = namespace.Structure
	// FieldConflict names a field of a document that both sides of a merge changed.
	FieldConflict = namespace.FieldConflict
	// ChunkGrid says which keys the chunks of an array have; see [Bulk.SetReferences].
	ChunkGrid = namespace.ChunkGrid
	// References are virtual values of chunks that follow each other in C order, as
	// columns of equal length.
	References = namespace.References
)

type (
	// Conflict is one reason why a merge is refused. Its strings are for people.
	Conflict = namespace.Conflict
	// ConflictKind names why two sides of a merge do not go together.
	ConflictKind = namespace.ConflictKind
	// Choice says which side of a conflict to take.
	Choice = namespace.Choice
	// PathChoice is a choice for all conflicts at and below a path.
	PathChoice = namespace.PathChoice
)

// The kinds of conflicts.
const (
	// ConflictChunk: both sides changed a chunk.
	ConflictChunk = namespace.ConflictChunk
	// ConflictStructure: one side changed a chunk, the other what the bytes of
	// the array's chunks depend on (codecs, data type, chunk shape, fill value).
	ConflictStructure = namespace.ConflictStructure
	// ConflictShrink: one side wrote a chunk that lies outside the shape that
	// the other gave the array.
	ConflictShrink = namespace.ConflictShrink
	// ConflictDocument: both sides changed a document, or a field of it.
	ConflictDocument = namespace.ConflictDocument
	// ConflictCreate: both sides created something at a path. Of two arrays with
	// the same metadata it names the chunks that only one of them has. Without a
	// common ancestor, it names what one side has and the other lacks, too.
	ConflictCreate = namespace.ConflictCreate
	// ConflictGone: one side removed or moved away what the other changed.
	ConflictGone = namespace.ConflictGone
	// ConflictRename: both sides renamed an array, or the place that it was
	// renamed to is taken.
	ConflictRename = namespace.ConflictRename
	// ConflictAncestor: one side put something below a group or array that the
	// other removed, moved or turned into an array.
	ConflictAncestor = namespace.ConflictAncestor
	// ConflictGuard: something changed that a session had read and guarded.
	ConflictGuard = namespace.ConflictGuard
	// conflictBranchRewound: the base of the session is no longer part of its
	// branch; or of a rebase, no longer its head.
	conflictBranchRewound = namespace.ConflictBranchRewound
)

// The sides of a conflict.
const (
	// refuse takes neither: the merge fails.
	refuse = namespace.Refuse
	// Ours takes what the first side has.
	Ours = namespace.Ours
	// Theirs takes what the second side has.
	Theirs = namespace.Theirs
)

// chooser returns the function that decides conflicts by choices, nil without any.
func chooser(choices []PathChoice, decided func(Conflict, Choice)) func(Conflict) Choice {
	if len(choices) == 0 {
		return nil
	}
	choose := namespace.ChooseByPath(choices...)
	return func(c Conflict) Choice {
		choice := choose(c)
		if decided != nil && choice != refuse {
			decided(c, choice)
		}
		return choice
	}
}
