// Package remote is what views of servers share: requests that are repeated
// where that helps, answers that are checked before they are believed, and
// batches of ranges that travel together.
//
//	kv/httpkv   kv/s3kv   kv/gcskv      a Protocol each: key → request
//	      └────────┼─────────┘
//	            Objects                 Get, Locate, GetMany of a view
//	               │   ranges of a key that lie close become one
//	            Client                  tries, back-off, redirects, stalls
//	               │
//	         http.RoundTripper          one of the process, bounded per host
//
// # What is never believed
//
// A server may ignore a range, cut a body short, send one without end, say a
// length that is not true, change a value between two requests, or answer
// slowly for ever. Memory grows with the bytes that arrive and never with a
// number that the server says. Bytes are passed on only if the answer says
// that they are the range that was asked for, of the version that was located;
// otherwise it is [kv.ErrChanged] or an [Error].
//
// # Secrets
//
// URLs in errors have neither user information nor the values of a query, and
// bodies of answers are not quoted.
package remote
