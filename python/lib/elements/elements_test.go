package elements

import (
	"os"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// The environment becomes that of the interpreter: credentials that a program sets are found.
func TestEnviron(t *testing.T) {
	for _, name := range []string{"ZARRDB_TEST_OLD", "ZARRDB_TEST_CHANGED", "ZARRDB_TEST_NEW"} {
		t.Setenv(name, "before")
	}
	must.Do(t, os.Unsetenv("ZARRDB_TEST_NEW"))
	environ := ""
	for _, kv := range os.Environ() {
		if kv != "ZARRDB_TEST_OLD=before" && kv != "ZARRDB_TEST_CHANGED=before" {
			environ += kv + "\x00"
		}
	}
	must.Do(t, setEnviron(environ+"ZARRDB_TEST_CHANGED=a=b\x00ZARRDB_TEST_NEW="))
	for name, want := range map[string]string{"ZARRDB_TEST_CHANGED": "a=b", "ZARRDB_TEST_NEW": ""} {
		if got, ok := os.LookupEnv(name); !ok || got != want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	if got, ok := os.LookupEnv("ZARRDB_TEST_OLD"); ok {
		t.Errorf("it is still set to %q", got)
	}
}
