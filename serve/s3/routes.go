package s3

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/serve"
)

// Levels of a path.
const (
	service = iota
	bucket
	object
)

// route answers requests with a method, at a level, with a parameter in the query.
type route struct {
	method string
	level  int
	param  string
	do     func(c *call) error
}

// routes are searched in order; a HEAD is searched as GET.
var routes = []route{
	{"GET", service, "", (*call).listBuckets},
	{"GET", bucket, "location", document(locationXML{})},
	{"GET", bucket, "versioning", document(versioningXML{})},
	{"GET", bucket, "versions", (*call).listVersions},
	{"GET", bucket, "uploads", (*call).listUploads},
	{"GET", bucket, "", (*call).list},
	{"PUT", bucket, "", (*call).createBucket},
	{"DELETE", bucket, "", (*call).deleteBucket},
	{"POST", bucket, "delete", (*call).deleteObjects},
	{"GET", object, "tagging", document(taggingXML{})},
	{"GET", object, "", (*call).get},
	{"PUT", object, "uploadId", (*call).uploadPart},
	{"PUT", object, "", (*call).put},
	{"POST", object, "uploads", (*call).createUpload},
	{"POST", object, "uploadId", (*call).completeUpload},
	{"DELETE", object, "uploadId", (*call).abortUpload},
	{"DELETE", object, "", (*call).delete},
}

// subresources are parameters that change the meaning of a request. A request with such a
// parameter that has no route is refused: the object or the listing is not its answer.
var subresources = []string{"accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "intelligent-tiering", "inventory",
	"legal-hold", "lifecycle", "location", "logging", "metadataTable", "metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus",
	"publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select", "session", "tagging", "torrent", "uploadId", "uploads",
	"versionId", "versioning", "versions", "website"}

// route returns the function for a request, or why it may not be made.
func (c *call) route() (func(*call) error, error) {
	level := object
	switch {
	case c.bucket == "" && c.object == "":
		level = service
	case c.object == "":
		level = bucket
	}
	if err := c.permitted(level); err != nil {
		return nil, err
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, r := range routes {
		if r.method != method || r.level != level || r.param != "" && !c.q.Has(r.param) {
			continue
		}
		if r.param == "" {
			for _, name := range subresources {
				if c.q.Has(name) && (name != "versionId" || c.q.Get(name) != "null") {
					return nil, &apiError{http.StatusNotImplemented, "NotImplemented", "this server has no " + name}
				}
			}
		}
		if c.r.Method == http.MethodHead && level == bucket {
			return (*call).headBucket, nil
		}
		return r.do, nil
	}
	return nil, &apiError{http.StatusMethodNotAllowed, "MethodNotAllowed", "the method is not allowed here"}
}

// permitted returns the reason why a request may not be made.
func (c *call) permitted(level int) error {
	rev, _, err := split(c.object)
	if err != nil {
		return err
	}
	id, inSession := strings.CutPrefix(rev, serve.SessionPrefix)
	if inSession {
		if _, err := c.t.Session(c.ctx, c.who, c.bucket, id); errors.Is(err, serve.ErrDenied) {
			return err
		}
	}
	switch method := c.r.Method; {
	case method == http.MethodGet || method == http.MethodHead:
		return nil
	case c.o.ReadOnly:
		return denied("this server is read-only")
	case level == service, method == http.MethodPost && level == bucket && !c.q.Has("delete"):
		return denied("buckets are databases: zarrdb init makes one")
	case level == bucket:
		return nil
	case !inSession:
		return denied("%s is for reading; objects are written below ~SESSION/, and committed with the session", serve.Clip(c.object))
	case c.q.Has("tagging"), c.q.Has("acl"):
		return denied("objects have no tags and no access control lists")
	}
	return nil
}

// document answers with the same document for every bucket or object.
func document(body any) func(c *call) error {
	return func(c *call) error {
		if err := c.exists(); err != nil {
			return err
		}
		return c.send(http.StatusOK, body)
	}
}

// exists returns an error if the bucket of a request does not exist.
func (c *call) exists() error {
	if !slices.Contains(c.t.Names(), c.bucket) {
		return serve.ErrNoDatabase
	}
	return nil
}

func (c *call) headBucket() error {
	if err := c.exists(); err != nil {
		return err
	}
	c.w.Header().Set("X-Amz-Bucket-Region", "us-east-1")
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func (c *call) listBuckets() error {
	var out bucketsXML
	for _, name := range c.t.Names() {
		out.Buckets = append(out.Buckets, bucketXML{name, stamp(c.started)})
	}
	out.Owner = owner
	return c.send(http.StatusOK, out)
}

// createBucket makes a database, for administrators of a directory of databases. Programs
// make a bucket before they write: one that exists is theirs.
func (c *call) createBucket() error {
	if c.exists() == nil {
		return &apiError{http.StatusConflict, "BucketAlreadyOwnedByYou", "the database exists"}
	}
	f, _, err := c.body(maxDocument, false) // it may name a region
	if err != nil {
		return err
	}
	f.close()
	switch err := c.t.Create(c.ctx, c.who, c.bucket); {
	case errors.Is(err, errors.ErrUnsupported):
		return denied("%s", fault.OneLine(err))
	case errors.Is(err, serve.ErrName):
		return &apiError{http.StatusBadRequest, "InvalidBucketName", fault.OneLine(err)}
	case err != nil:
		return err
	}
	c.w.Header().Set("Location", "/"+c.bucket)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// deleteBucket deletes nothing: a database is removed with its directory.
func (c *call) deleteBucket() error {
	if err := c.exists(); err != nil {
		return err
	}
	if err := c.who.MayAdminister("delete databases"); err != nil {
		return err
	}
	return &apiError{http.StatusConflict, "BucketNotEmpty", "a database and its history are not deleted over S3; remove its directory"}
}
