package s3kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
)

// identity holds the credentials that sign requests. It tries its sources in
// order, and again when the credentials have expired.
type identity struct {
	sources []credentials.Provider // each returns the zero Value if it is not configured

	asking ctxlock.Lock
	from   credentials.Provider // of the credentials, nil without any
	value  credentials.Value
	// until is the time up to which the machine is assumed to have no role: a
	// request for it may last a second.
	until time.Time
}

// identities caches the identities of the process by profile, so that the
// machine's role is requested once.
var identities sync.Map // of *identity

// identityOf returns the identity of a profile with these settings.
func identityOf(profile string, section map[string]string) *identity {
	// The key includes the variables and the state of the files, so that a
	// process that changes them gets a new identity.
	name := profile + "\x00" + stateOfProfiles()
	for _, variable := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
		"AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		name += "\x00" + os.Getenv(variable)
	}
	i := &identity{sources: []credentials.Provider{&variables{}, &keysOfProfile{FileAWSCredentials: credentials.FileAWSCredentials{Profile: profile}}}}
	if r := roleOf(section); r != nil {
		i.sources = append(i.sources, r)
	}
	known, _ := identities.LoadOrStore(name, i)
	return known.(*identity)
}

// variables are the keys in the environment.
type variables struct{ credentials.EnvAWS }

func (e *variables) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	v, err := e.EnvAWS.RetrieveWithCredContext(c)
	if err == nil && (v.AccessKeyID == "") != (v.SecretAccessKey == "") {
		err = errors.New("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set")
	}
	return v, err
}

// keysOfProfile are the keys of a profile, or those of its single sign-on or
// credential_process. They are read again when the files change: programs that
// rotate keys write new ones there.
type keysOfProfile struct {
	credentials.FileAWSCredentials
	read string // the state of the files when they were read
}

func (f *keysOfProfile) IsExpired() bool {
	return f.FileAWSCredentials.IsExpired() || f.read != stateOfProfiles()
}

func (f *keysOfProfile) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	f.read = stateOfProfiles() // before they are read: a change meanwhile counts
	section, err := loadProfile(f.Profile)
	if err != nil {
		return credentials.Value{}, err
	}
	configured := slices.ContainsFunc(credentialKeys, func(k string) bool { return section[k] != "" })
	v, err := f.FileAWSCredentials.RetrieveWithCredContext(c)
	switch {
	case !configured:
		return credentials.Value{}, nil
	case err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "":
		return v, nil
	case section["sso_role_name"] != "":
		return v, fmt.Errorf("profile %.80q gives no credentials; try \"aws sso login\"", cmp.Or(f.Profile, "default"))
	}
	return v, fmt.Errorf("profile %.80q gives no credentials", cmp.Or(f.Profile, "default")) // the reason may quote them
}

// role is a role that may be assumed: one that the environment or the profile
// names, else that of the machine.
type role struct {
	credentials.IAM
	named bool
}

// roleOf returns the role to assume, nil if no source is configured.
func roleOf(section map[string]string) *role {
	r := &role{}
	// A token of the environment belongs to the role of the environment.
	if os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") == "" && section["role_arn"] != "" {
		r.EKSIdentity.TokenFile = section["web_identity_token_file"]
		r.EKSIdentity.RoleARN = section["role_arn"]
		r.EKSIdentity.RoleSessionName = section["role_session_name"]
	}
	if web := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") + r.EKSIdentity.TokenFile; web != "" {
		r.named = true
		r.Endpoint = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_STS"), os.Getenv("AWS_ENDPOINT_URL"), section["endpoint_url"])
		r.Region = cmp.Or(os.Getenv("AWS_DEFAULT_REGION"), section["region"])
		return r
	}
	r.named = r.EKSIdentity.RoleARN != ""
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		r.named = r.named || os.Getenv(name) != ""
	}
	if !r.named {
		if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
			return nil
		}
		r.Endpoint = strings.TrimSuffix(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
	}
	return r
}

// Timeouts of the services that give roles: that of the machine answers fast or
// does not exist; another one may be remote.
const (
	dialTimeout      = 500 * time.Millisecond
	roleTimeout      = 2 * time.Second
	namedRoleTimeout = 30 * time.Second
)

var (
	errNoService = errors.New("the metadata service of the machine cannot be reached")
	errNoRole    = errors.New("the metadata service of the machine knows no role")
)

// RetrieveWithCredContext implements credentials.Provider. An error quotes no
// secret.
func (r *role) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	cc := *c
	if r.named {
		if r.EKSIdentity.RoleARN != "" && r.EKSIdentity.TokenFile == "" {
			return credentials.Value{}, errors.New("role_arn of the profile needs web_identity_token_file; source_profile and credential_source are not supported")
		}
		cc.Client = &http.Client{Timeout: namedRoleTimeout}
		v, err := r.IAM.RetrieveWithCredContext(&cc)
		if err != nil || v.AccessKeyID == "" {
			return v, refused(err)
		}
		return v, nil
	}
	m := &metadata{transport: http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext}}
	defer m.transport.CloseIdleConnections()
	cc.Client = &http.Client{Timeout: roleTimeout, Transport: m}
	v, err := r.IAM.RetrieveWithCredContext(&cc)
	switch {
	case err == nil && v.AccessKeyID != "":
		return v, nil
	case m.none != nil:
		return v, m.none
	}
	return v, errors.New("the metadata service of the machine gives no credentials; AWS_EC2_METADATA_DISABLED=true leaves it out")
}

// metadata sends requests to the metadata service, without a proxy.
type metadata struct {
	transport http.Transport
	none      error // of the last request: errNoService, errNoRole or nil
}

func (m *metadata) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.transport.RoundTrip(req)
	var failed *net.OpError
	m.none = nil
	switch {
	case errors.As(err, &failed) && failed.Op == "dial":
		m.none = errNoService
	case err != nil:
	case resp.StatusCode == http.StatusBadRequest, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusMethodNotAllowed:
		m.none = errNoRole // not 401: that asks for a token, which a proxy on the way may have lost
	}
	return resp, err
}

// noRoleFor is the time before a machine without a role is asked again.
const noRoleFor = time.Minute

// get returns the credentials, the zero value if none are configured and the
// machine has no role. A failed look-up is an error of this call only, not
// anonymous access: otherwise a 403 would pass for a missing key. With sure, an
// unreachable metadata service is an error too; without, the machine is assumed
// to have no role.
func (i *identity) get(ctx context.Context, sure bool) (credentials.Value, error) {
	if err := i.asking.Lock(ctx); err != nil {
		return credentials.Value{}, err
	}
	defer i.asking.Unlock()
	return i.ask(ctx, sure)
}

// renew asks again for credentials, in place of refused ones.
func (i *identity) renew(ctx context.Context, refused credentials.Value, sure bool) (credentials.Value, error) {
	if err := i.asking.Lock(ctx); err != nil {
		return credentials.Value{}, err
	}
	defer i.asking.Unlock()
	if i.value.AccessKeyID == refused.AccessKeyID && i.value.SessionToken == refused.SessionToken {
		i.from = nil // the refused credentials are still the newest
	}
	return i.ask(ctx, sure)
}

// ask is get for a caller that has its turn.
func (i *identity) ask(ctx context.Context, sure bool) (credentials.Value, error) {
	if i.from != nil && !i.from.IsExpired() {
		return i.value, nil
	}
	i.from = nil
	for _, p := range i.sources {
		if _, ok := p.(*role); ok && !sure && time.Now().Before(i.until) {
			continue
		}
		v, err := p.RetrieveWithCredContext(&credentials.CredContext{Context: ctx})
		switch {
		case ctx.Err() != nil:
			return credentials.Value{}, ctx.Err()
		case err == errNoRole, err == errNoService && !sure:
			i.until = time.Now().Add(noRoleFor)
		case err != nil:
			return credentials.Value{}, err
		case v.AccessKeyID != "":
			i.from, i.value = p, v
			return v, nil
		}
	}
	return credentials.Value{}, nil
}

// refused returns the error of a role that cannot be assumed, without secrets.
func refused(err error) error {
	var answer credentials.ErrorResponse
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return fmt.Errorf("the role cannot be assumed: %w", file)
	case errors.As(err, &answer) && len(answer.STSError.Code) < 100:
		return fmt.Errorf("the role cannot be assumed: %q", answer.STSError.Code)
	}
	return errors.New("the role cannot be assumed")
}
