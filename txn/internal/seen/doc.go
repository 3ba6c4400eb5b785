// Package seen knows which values of keys the session of a peer has read, so that its writes have conditions.
//
//	read   key ──▶ value      the identity of the value is noted
//	write  key ──▶ [Expect]   the holder writes if the value is still that one, else [ChangedError]
package seen
