// Package gcskv is a bucket of Google Cloud Storage as a view that can be read,
// listed and written, through the JSON API.
//
//	gs://bucket/ ─▶ https://storage.googleapis.com/storage/v1/b/bucket/o/KEY?alt=media
//
// # Configuration
//
//	credentials  the access token in GOOGLE_OAUTH_ACCESS_TOKEN, or the application
//	             default credentials: the file GOOGLE_APPLICATION_CREDENTIALS, that
//	             of gcloud, or the machine's service account, which is not asked
//	             for where NO_GCE_CHECK is "true". Without any, requests are anonymous, as
//	             with GS_NO_SIGN_REQUEST=yes.
//	endpoint     STORAGE_EMULATOR_HOST, which is asked without credentials
//
// # Values and keys
//
// A located value has the generation of its object. Reading it after the object
// was replaced is kv.ErrChanged. Objects whose names end in a slash are no keys.
package gcskv
