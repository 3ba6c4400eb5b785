// Package s3kv is a bucket of Amazon S3, or of a server with its API, as a view
// that can be read, listed and written.
//
//	s3://bucket/ ─▶ https://bucket.s3.REGION.amazonaws.com/KEY
//	                ENDPOINT/bucket/KEY          with another endpoint
//	                  │
//	             signed (AWS4-HMAC-SHA256) with the configured credentials
//
// # Configuration
//
// Options override these settings, which are those of the AWS tools:
//
//	credentials  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN;
//	             the profile AWS_PROFILE of ~/.aws/credentials and ~/.aws/config
//	             (keys, SSO, credential_process); the role for a web identity
//	             (AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE, or role_arn and
//	             web_identity_token_file of the profile; AWS_ENDPOINT_URL_STS
//	             and AWS_ENDPOINT_URL say where it is asked for); the container's
//	             or machine's role (AWS_EC2_METADATA_SERVICE_ENDPOINT says
//	             where), unless AWS_EC2_METADATA_DISABLED is "true".
//	             Without any, requests are anonymous, as with
//	             AWS_NO_SIGN_REQUEST=yes. A configured source that gives no
//	             credentials is an error of the request, and is asked again by
//	             the next one. A machine whose metadata service cannot be
//	             reached is taken to have no role for a minute, but not with
//	             Options.Forbidden.
//	endpoint     AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url of the profile
//	region       AWS_REGION, AWS_DEFAULT_REGION, region of the profile. If the
//	             bucket is in another one, AWS names it and the request is repeated there.
//
// # Values and keys
//
// A located value has the ETag of its object, and is read with If-Match; an
// object that was replaced is kv.ErrChanged. Objects whose names end in a slash,
// which some tools make to show a directory, are no keys. Keys with "." or ".."
// as a name are refused: servers resolve them.
package s3kv
