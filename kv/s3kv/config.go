package s3kv

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gopkg.in/ini.v1"
)

// place is where a bucket is.
type place struct {
	endpoint *url.URL // nil: Amazon
	virtual  bool     // at an endpoint, the bucket is part of the host

	mu sync.Mutex
	in string // the region, empty if unknown
}

const defaultRegion = "us-east-1"

func (p *place) region() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.in
}

// moved notes that the bucket is in another region.
func (p *place) moved(region string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in = region
}

// url is the address of a bucket, with a slash at its end.
func (p *place) url(bucket, region string) *url.URL {
	u := url.URL{Scheme: "https", Path: "/"}
	virtual := p.virtual
	if p.endpoint != nil {
		u.Scheme, u.Host, u.Path = p.endpoint.Scheme, p.endpoint.Host, strings.TrimSuffix(p.endpoint.Path, "/")+"/"
	} else {
		u.Host = "s3." + region + ".amazonaws.com"
		if strings.HasPrefix(region, "cn-") {
			u.Host += ".cn"
		}
		// The certificate is for one name before the host, without dots.
		virtual = !strings.Contains(bucket, ".") && strings.ToLower(bucket) == bucket
	}
	if virtual {
		u.Host = bucket + "." + u.Host
	} else {
		u.Path += bucket + "/"
	}
	return &u
}

// configure fills in what the options leave open.
func (b *bucket) configure() error {
	profile := cmp.Or(b.o.Profile, os.Getenv("AWS_PROFILE"))
	section, err := loadProfile(profile)
	if err != nil {
		return err
	}
	anonymous := b.o.Anonymous || slices.Contains([]string{"yes", "true", "1"}, strings.ToLower(os.Getenv("AWS_NO_SIGN_REQUEST")))
	endpoint := cmp.Or(b.o.Endpoint, endpointOf(section))
	b.at.in = cmp.Or(b.o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), section["region"], defaultRegion)
	for _, c := range b.at.in {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return fmt.Errorf("region %.40q", b.at.in)
		}
	}
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return errors.New("the endpoint is not an http or https URL")
		}
		if u.User != nil {
			return errors.New("the endpoint has a user in it, which S3 has no use for")
		}
		b.at.endpoint, b.at.virtual = u, b.o.VirtualHost
	}
	if !anonymous {
		b.identity = identityOf(profile, section)
	}
	return nil
}

// Endpoint returns the URL of the server that buckets are at, as the environment says; "" is Amazon.
func Endpoint() string {
	section, _ := loadProfile(os.Getenv("AWS_PROFILE"))
	return endpointOf(section)
}

func endpointOf(section map[string]string) string {
	return cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), section["endpoint_url"])
}

// credentialKeys are the settings of a profile that give credentials.
var credentialKeys = []string{"aws_access_key_id", "aws_secret_access_key", "sso_role_name", "sso_session", "sso_start_url", "sso_account_id", "credential_process"}

// profileKeys are the other settings that are read.
var profileKeys = []string{"region", "endpoint_url", "role_arn", "role_session_name", "web_identity_token_file"}

// profileFiles returns the paths of the files of profiles.
func profileFiles() (config, shared string) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then only the variables name files
	}
	config = cmp.Or(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config"))
	shared = cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials"))
	return config, shared
}

// stateOfProfiles returns a text that differs after a change of one of these
// files.
func stateOfProfiles() string {
	state := ""
	config, shared := profileFiles()
	for _, file := range []string{config, shared} {
		if info, err := os.Stat(file); err == nil {
			state += fmt.Sprintf("%d %d", info.ModTime().UnixNano(), info.Size())
		}
		state += "\x00"
	}
	return state
}

// loadProfile reads a profile of the configuration file, which may be missing. A
// profile that is configured by name must be in that file or in the credentials
// file.
func loadProfile(name string) (map[string]string, error) {
	config, shared := profileFiles()
	found := false
	keys := map[string]string{}
	for _, file := range []string{shared, config} {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f, err := ini.Load(text)
		if err != nil {
			return nil, fmt.Errorf("%s is malformed", file) // the reason may quote a secret
		}
		for _, section := range []string{cmp.Or(name, "default"), "profile " + cmp.Or(name, "default")} {
			if s, err := f.GetSection(section); err == nil {
				found = true
				for _, k := range slices.Concat(profileKeys, credentialKeys) {
					keys[k] = cmp.Or(s.Key(k).String(), keys[k])
				}
			}
		}
	}
	if name != "" && !found {
		return nil, fmt.Errorf("no profile %.80q in %s or %s", name, config, shared)
	}
	return keys, nil
}
