package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// killedClients is how many client processes are at work, and killed, at the same time.
const killedClients = 4

func TestKilledClients(t *testing.T) {
	killClients(t, func(round int) bool { return round < killRounds })
}

func TestSoakKilledClients(t *testing.T) {
	end := time.Now().Add(soaktest.Time(t))
	killClients(t, func(int) bool { return time.Now().Before(end) })
}

// Client processes write, commit and read, and are killed at random moments while
// versions expire and space is given back. What was acknowledged is there and at most one
// commit more, nothing is half done, and nothing of a killed client stays in the holder.
func killClients(t *testing.T, more func(round int) bool) {
	h, c := served(t, nil, nil)
	first := map[string][]byte{}
	for k := range killedClients {
		first[fmt.Sprintf("w%d", k)], first[fmt.Sprintf("n%d", k)] = payload(k, 0), []byte("0")
	}
	put(t, h.db, first)
	done := make([]int, killedClients) // the last commit of each that is in the database
	before := descriptors(t)
	rounds := 0
	for ; more(rounds); rounds++ {
		clients := make([]*child, killedClients)
		for k := range clients {
			clients[k] = start(t, "killed", h.l.Path(), strconv.Itoa(k), strconv.Itoa(done[k]))
		}
		for k, client := range clients {
			client.line(t) // it has begun
			time.Sleep(time.Duration(rand.IntN(15_000)) * time.Microsecond)
			acknowledged := done[k]
			for _, line := range client.kill(t) {
				n, err := strconv.Atoi(line)
				if err != nil {
					t.Fatalf("client %d: %s", k, line)
				}
				acknowledged = n
			}
			done[k] = wantCommits(t, c, k, acknowledged)
		}
		must.Get(h.db.Expire(bg, txn.ExpireOptions{Keep: 1, Before: time.Now().Add(time.Hour)}))(t)
		must.Get(h.db.GC(bg, txn.GCOptions{}))(t)
	}
	t.Logf("%d rounds, commits %v", rounds, done)

	left := func() error {
		sessions, err := h.db.Sessions(bg)
		if err != nil {
			return err
		}
		for _, i := range sessions { // those with writes can be resumed
			s, err := h.db.Resume(bg, i.ID)
			if err != nil {
				return err
			}
			n := 0
			for _, err := range s.Changes(bg, "") {
				if n++; err != nil {
					return err
				}
			}
			if n == 0 {
				return fmt.Errorf("session %s is open, and nothing was written to it", i.ID)
			}
			if err := s.Abort(); err != nil {
				return err
			}
		}
		r, err := h.db.GC(bg, txn.GCOptions{})
		if err != nil || r.Leased > 0 {
			return fmt.Errorf("%d packs are leased, %v", r.Leased, err)
		}
		if n := descriptors(t); n > before+4 { // packs that were made meanwhile
			return fmt.Errorf("%d files are open, %d were before", n, before)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	for err := left(); err != nil; err = left() { // the holder notices the last ones in a moment
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// wantCommits checks that the head has the last commit of a writer that was acknowledged,
// or the one after it, whole. It returns which.
func wantCommits(t *testing.T, c *Client, writer, acknowledged int) int {
	t.Helper()
	v := must.Get(viewOf(t, c, "main"))(t)
	defer v.Close()
	number := must.Get(kv.Get(bg, v, fmt.Sprintf("n%d", writer)))(t)
	n, err := strconv.Atoi(string(number))
	if err != nil || n != acknowledged && n != acknowledged+1 {
		t.Fatalf("the head has commit %q of client %d, %v; %d was acknowledged", number, writer, err, acknowledged)
	}
	wantValue(t, v, fmt.Sprintf("w%d", writer), payload(writer, n))
	return n
}

// killedClient is a process that is to be killed: SOCKET WRITER LAST. It prints the number of
// each commit that was acknowledged. One of four has no descriptors passed to it.
func killedClient(args []string) error {
	writer, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	last, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c, err := Dial(bg, args[0], &DialOptions{NoFiles: writer%4 == 3})
	if err != nil {
		return err
	}
	fmt.Println("begun")
	go func() { // holds what it reads, and sessions that it never ends
		for {
			err := readSomething(c)
			if err != nil && !errors.Is(err, ErrLimit) {
				fmt.Println("error", err)
			}
		}
	}()
	for n := last + 1; ; n++ {
		s, err := beginOn(c)
		if err != nil {
			return err
		}
		if err := s.Set(bg, fmt.Sprintf("w%d", writer), payload(writer, n)); err != nil {
			return err
		}
		if err := s.Set(bg, fmt.Sprintf("n%d", writer), []byte(strconv.Itoa(n))); err != nil {
			return err
		}
		if _, err := s.Commit(bg, txn.CommitOptions{Message: args[1]}); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return err
		}
	}
}

// readSomething reads and compares one value of each client, in a version and in a session,
// which may have a write of its own, and which it leaves open or closes.
func readSomething(c *Client) error {
	s, err := beginOn(c)
	if err != nil {
		return err
	}
	if rand.IntN(8) > 0 {
		defer s.Close()
	}
	if rand.IntN(2) > 0 {
		if err := s.Set(bg, "x", payload(9, rand.IntN(3))); err != nil {
			return err
		}
	}
	v, err := viewOf(nil, c, "main")
	if err != nil {
		return err
	}
	defer v.Close()
	for k := range killedClients {
		for _, r := range []kv.Reader{v, s} {
			b, err := kv.Get(bg, r, fmt.Sprintf("w%d", k))
			if err == nil {
				err = wantPayload(b, k)
			}
			if err != nil {
				return fmt.Errorf("w%d: %w", k, err)
			}
		}
	}
	return nil
}
