// Package remote has the common parts of views of servers: requests with
// retries, checks of answers, and many requests at a time.
//
//	kv/httpkv   kv/s3kv   kv/gcskv      a Protocol each: key → request
//	      └────────┼─────────┘
//	            Objects                 Get, Locate, GetMany of a view
//	               │   ranges of a key that lie close become one
//	            Client                  tries, back-off, redirects, stalls
//	               │
//	         http.RoundTripper          one of the process, bounded per host
//
// # Untrusted answers
//
// A server may ignore a range, cut a body short, send one without end, declare a
// wrong length, change a value between two requests, or answer slowly for ever.
// Memory grows with the bytes that arrive, never with a declared length. Bytes
// are passed on only if the headers of the answer match the requested range and
// the located version; otherwise the error is [kv.ErrChanged] or an [Error].
//
// # Secrets
//
// URLs in errors have neither user information nor the values of a query, and
// bodies of answers are not quoted.
package remote
