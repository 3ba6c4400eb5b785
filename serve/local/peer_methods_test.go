package local

import (
	"context"
	"io"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
)

// No exported method of a database panics where another process has it open.
func TestPeerMethods(t *testing.T) {
	t.Chdir(t.TempDir()) // some methods make a copy in the directory "main"
	h, c := served(t, nil, nil)
	id := put(t, h.db, map[string][]byte{"k": []byte("v")})
	open := func() *engine.DB {
		p := must.Get(c.Peer(nil))(t)
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	to := must.Get(engine.Open(bg, filepath.Join(t.TempDir(), "to.zdb"), &engine.Options{Create: true, Author: "tester"}))(t)
	defer to.Close()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	argument := func(of reflect.Type) reflect.Value {
		for _, v := range []any{ctx, id, to, "main", io.Discard} {
			if reflect.TypeOf(v).AssignableTo(of) && of.NumMethod() > 0 || reflect.TypeOf(v) == of {
				return reflect.ValueOf(v)
			}
		}
		if of.Kind() == reflect.Func {
			return reflect.MakeFunc(of, func([]reflect.Value) (out []reflect.Value) {
				for i := range of.NumOut() {
					out = append(out, reflect.Zero(of.Out(i)))
				}
				return out
			})
		}
		return reflect.Zero(of)
	}
	call := func(db *engine.DB, i int) (panicked any) {
		defer func() { panicked = recover() }()
		m := reflect.ValueOf(db).Method(i)
		in := make([]reflect.Value, m.Type().NumIn())
		for i := range in {
			in[i] = argument(m.Type().In(i))
		}
		do := m.Call
		if m.Type().IsVariadic() {
			do = m.CallSlice
		}
		for _, v := range do(in) {
			if v.Kind() != reflect.Func || v.IsNil() {
				continue
			}
			if v.Type().CanSeq2() {
				for range v.Seq2() {
					break
				}
			} else if v.Type().NumIn() == 0 {
				v.Call(nil)
			}
		}
		return nil
	}
	methods := reflect.TypeFor[*engine.DB]()
	for i := range methods.NumMethod() {
		panicked := call(open(), i)
		if panicked == nil {
			continue
		}
		// A program may not leave out every argument.
		own := must.Get(engine.Open(bg, filepath.Join(t.TempDir(), "own.zdb"), &engine.Options{Create: true, Author: "tester"}))(t)
		if call(own, i) == nil {
			t.Errorf("%s: panic: %v", methods.Method(i).Name, panicked)
		}
		_ = own.Close()
	}
}
