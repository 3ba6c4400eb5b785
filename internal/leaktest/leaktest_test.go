package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// tests are what m.Run does in a test.
type tests func() int

func (f tests) Run() int { return f() }

// A goroutine that ends late is waited for, longer than goleak does. One that goes on is
// left to goleak after a while, and at once if the tests have failed.
func TestRun(t *testing.T) {
	end := make(chan struct{})
	late := tests(func() int {
		go func() { <-end }()
		time.AfterFunc(time.Second, func() { close(end) })
		return 0
	})
	if code := (patient{late}).Run(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := goleak.Find(); err != nil {
		t.Errorf("it was not waited for: %v", err)
	}
	defer func(d time.Duration) { patience = d }(patience)
	patience = time.Millisecond
	leave := make(chan struct{})
	defer close(leave)
	leak := tests(func() int {
		go func() { <-leave }()
		return 0
	})
	if code := (patient{leak}).Run(); code != 0 || goleak.Find() == nil {
		t.Errorf("a goroutine that goes on: exit code %d, found %v", code, goleak.Find())
	}
	patience = time.Hour
	if code := (patient{tests(func() int { return 3 })}).Run(); code != 3 {
		t.Errorf("tests that fail: exit code %d", code)
	}
}
