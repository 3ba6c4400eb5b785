package s3kv

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// identity is who requests are signed as. It is asked again when credentials
// have run out.
type identity struct {
	mu    sync.Mutex
	chain *credentials.Credentials
	role  *role // nil if none is asked for

	nobody bool // there are none
}

// identities are those of the process by profile, so that the machine's role is
// asked for once.
var identities struct {
	mu sync.Mutex
	m  map[string]*identity
}

// whoIs returns the identity of a profile, whose settings are given.
func whoIs(profile string, section map[string]string) *identity {
	// What the environment says now belongs to the name, so that a process
	// which changes it is somebody else then.
	name := profile
	for _, variable := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_EC2_METADATA_DISABLED",
		"AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		name += "\x00" + os.Getenv(variable)
	}
	identities.mu.Lock()
	defer identities.mu.Unlock()
	if identities.m == nil {
		identities.m = map[string]*identity{}
	}
	if identities.m[name] == nil {
		i := &identity{role: roleOf(section)}
		providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: profile}}
		if i.role != nil {
			providers = append(providers, i.role)
		}
		i.chain = credentials.NewChainCredentials(providers)
		identities.m[name] = i
	}
	return identities.m[name]
}

// role is a role that may be taken: one that the environment or the profile
// names, else that of the machine.
type role struct {
	credentials.IAM
	named bool
	err   error // of the last try: a chain does not tell
}

// roleOf returns the role to ask for, nil if there is none.
func roleOf(section map[string]string) *role {
	r := &role{}
	// A token that the environment names goes with the role that it names.
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
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		r.named = r.named || os.Getenv(name) != ""
	}
	if !r.named && strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return nil
	}
	return r
}

// RetrieveWithCredContext implements credentials.Provider.
func (r *role) RetrieveWithCredContext(c *credentials.CredContext) (v credentials.Value, err error) {
	v, r.err = r.IAM.RetrieveWithCredContext(c)
	return v, r.err
}

// Times that a service may take which knows a role: the machine's is near, or
// does not exist; a named one may be elsewhere.
const (
	roleTimeout      = 2 * time.Second
	namedRoleTimeout = 30 * time.Second
)

// get returns the credentials; the zero value is nobody. Who names a role and does
// not get it is not nobody: what is then forbidden would look like missing.
func (i *identity) get() (credentials.Value, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.nobody {
		return credentials.Value{}, nil
	}
	timeout := roleTimeout
	if i.role != nil && i.role.named {
		timeout = namedRoleTimeout
	}
	v, err := i.chain.GetWithContext(&credentials.CredContext{Client: &http.Client{Timeout: timeout}})
	switch {
	case err != nil:
		return v, errors.New("credentials cannot be had") // the reason may quote them
	case v.AccessKeyID != "":
		return v, nil
	case i.role != nil && i.role.named:
		return v, i.role.refused()
	}
	i.nobody = true
	return v, nil
}

// refused says why a role cannot be had, as far as that quotes no secret.
func (r *role) refused() error {
	var answer credentials.ErrorResponse
	var file *fs.PathError
	switch {
	case errors.As(r.err, &file):
		return fmt.Errorf("the role cannot be had: %w", file)
	case errors.As(r.err, &answer) && len(answer.STSError.Code) < 100:
		return fmt.Errorf("the role cannot be had: %q", answer.STSError.Code)
	}
	return errors.New("the role cannot be had")
}
