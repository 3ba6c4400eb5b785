// Package listing lists the keys of stores that cannot be listed, such as web servers,
// from their consolidated metadata.
//
//	consolidated metadata ─▶ group/zarr.json, group/x/zarr.json, group/x/c/0/0, …
//	                         in the order of keys, whether they exist or not
package listing
