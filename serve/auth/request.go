package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/zarrdb/zarrdb/serve"
)

// errUnknown means that a secret is not one of the keys. Its text has no
// details.
var errUnknown = errors.New("auth: the key is not known")

// Authenticate returns the sender of a request. The secret is a Bearer token, or
// the password of Basic authentication, whose user is the name. Requests without
// credentials get the principal of the line anonymous, nil without that line.
// Other credentials are ErrUnknown.
func (k *Keys) Authenticate(r *http.Request) (*serve.Principal, error) {
	keys, anonymous := k.now()
	values := r.Header.Values("Authorization")
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return anonymous, nil
	}
	if len(values) > 1 {
		return nil, errUnknown
	}
	name, secret, ok := r.BasicAuth()
	if !ok {
		scheme, rest, _ := strings.Cut(values[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return nil, errUnknown
		}
		secret = strings.TrimSpace(rest)
	}
	if who := find(keys, name, secret); who != nil {
		return who, nil
	}
	return nil, errUnknown
}

// find returns the owner of a secret. It compares every key, so that its time
// does not depend on the secret. An empty name matches all.
func find(keys []key, name, secret string) *serve.Principal {
	sum := sha256.Sum256([]byte(secret))
	var found *serve.Principal
	for _, one := range keys {
		if subtle.ConstantTimeCompare(sum[:], one.sum[:]) == 1 && (name == "" || name == one.who.Name) {
			found = one.who
		}
	}
	return found
}

// Secrets returns the secrets of a name, for signatures, each with its
// principal. It skips lines with a sum.
func (k *Keys) Secrets(name string) (secrets []string, who []*serve.Principal) {
	keys, _ := k.now()
	for _, one := range keys {
		if one.who.Name == name && one.secret != "" {
			secrets, who = append(secrets, one.secret), append(who, one.who)
		}
	}
	return secrets, who
}

// Anonymous returns the principal of requests without credentials; nil refuses
// them.
func (k *Keys) Anonymous() *serve.Principal {
	_, anonymous := k.now()
	return anonymous
}
