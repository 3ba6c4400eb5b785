package s3

import (
	"encoding/xml"
	"time"
)

// The documents of requests and answers.

type errorXML struct {
	XMLName  xml.Name `xml:"Error"`
	Code     string
	Message  string
	Resource string
}

type ownerXML struct{ ID, DisplayName string }

var owner = &ownerXML{"zarrdb", "zarrdb"}

type bucketXML struct{ Name, CreationDate string }

type bucketsXML struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
	Owner   *ownerXML
	Buckets []bucketXML `xml:"Buckets>Bucket"`
}

type locationXML struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"` // empty: us-east-1
}

type versioningXML struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ VersioningConfiguration"` // empty: never enabled
}

type taggingXML struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ Tagging"`
	TagSet  struct{}
}

// uploadsXML are uploads under way.
type uploadsXML struct {
	XMLName        xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
	Bucket, Prefix string
	MaxUploads     int
	IsTruncated    bool
	Upload         []openUploadXML
}

type openUploadXML struct {
	Key                     string
	UploadID                string `xml:"UploadId"`
	Initiated, StorageClass string
}

// listXML is a page of a listing, in any of the three versions of the request.
type listXML struct {
	XMLName               xml.Name
	Name                  string
	Prefix                string
	Delimiter             string `xml:",omitempty"`
	MaxKeys               int
	EncodingType          string  `xml:",omitempty"`
	KeyCount              *int    `xml:",omitempty"`
	Marker, NextMarker    *string `xml:",omitempty"`
	KeyMarker             *string `xml:",omitempty"`
	NextKeyMarker         *string `xml:",omitempty"`
	StartAfter            *string `xml:",omitempty"`
	ContinuationToken     *string `xml:",omitempty"`
	NextContinuationToken *string `xml:",omitempty"`
	IsTruncated           bool
	Contents              []contentXML
	Version               []contentXML
	CommonPrefixes        []prefixXML
}

type prefixXML struct{ Prefix string }

type contentXML struct {
	Key          string
	VersionID    string `xml:"VersionId,omitempty"`
	IsLatest     bool   `xml:",omitempty"`
	LastModified string
	ETag         string `xml:",omitempty"`
	Size         int64
	StorageClass string
	Owner        *ownerXML
}

type deleteXML struct {
	Object []struct{ Key, ETag string }
	Quiet  bool
}

type deletedXML struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
	Deleted []struct{ Key string }
	Error   []struct{ Key, Code, Message string }
}

type copiedXML struct {
	XMLName      xml.Name
	ETag         string
	LastModified string
}

type uploadXML struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
	Bucket   string
	Key      string
	UploadID string `xml:"UploadId"`
}

type completeXML struct {
	Part []struct {
		PartNumber int
		ETag       string
	}
}

type completedXML struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
	Location string
	Bucket   string
	Key      string
	ETag     string
}

// named is the name of a document.
func named(local string) xml.Name {
	return xml.Name{Space: "http://s3.amazonaws.com/doc/2006-03-01/", Local: local}
}

// stamp prints a time, in whole seconds as in headers.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05") + ".000Z" }
