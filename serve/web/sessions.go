package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// sessionJSON is a session as the command line prints it.
type sessionJSON struct {
	ID      string    `json:"id"`
	Branch  string    `json:"branch"`
	Base    string    `json:"base"`
	Label   string    `json:"label"`
	Created time.Time `json:"created,omitzero"`
	Saved   time.Time `json:"saved,omitzero"`
	Used    time.Time `json:"used,omitzero"`
	txn.Origin
	// Changes are its changes, if requested.
	Changes *changesJSON `json:"changes,omitempty"`
}

// describeSession describes a session that is open.
func describeSession(e *engine.Session) sessionJSON {
	return sessionJSON{ID: e.ID().String(), Branch: e.Branch(), Base: e.Base().String(), Label: e.Label(), Origin: e.Info().By.Named()}
}

// changesJSON counts the changes of a session since its base.
type changesJSON struct {
	Chunks map[string]int `json:"chunks"` // by path of the array
	Keys   []string       `json:"keys"`   // all other keys, up to maxChanges
	More   bool           `json:"more,omitempty"`
}

// maxChanges bounds a status.
const maxChanges = 10_000

// commitJSON is a commit as the command line prints it.
type commitJSON struct {
	ID         string            `json:"id"`
	Parents    []string          `json:"parents"`
	Author     string            `json:"author"`
	Time       time.Time         `json:"time"`
	Message    string            `json:"message"`
	Properties map[string]string `json:"properties,omitempty"`
}

const sessionPath = "/-/api/sessions"

// sessionRoutes adds the requests about sessions.
func (h *handler) sessionRoutes() {
	h.handle("GET "+sessionPath, h.listSessions)
	h.handle("POST "+sessionPath, h.changing(h.begin))
	h.handle("GET "+sessionPath+"/{db}/{id}", h.onSession(h.status))
	h.handle("DELETE "+sessionPath, h.changing(h.abortOld))
	h.handle("DELETE "+sessionPath+"/{db}/{id}", h.changing(h.abort))
	h.handle("POST "+sessionPath+"/{db}/{id}/commit", h.changing(h.onSession(h.commit)))
	h.handle("POST "+sessionPath+"/{db}/{id}/savepoint", h.changing(h.onSession(silent(func(s *serve.Session, ctx context.Context) error { return s.Engine().Savepoint(ctx) }))))
}

// changing is a request that writes.
func (h *handler) changing(fn reply) reply {
	return func(w http.ResponseWriter, r *http.Request) error {
		if h.o.ReadOnly {
			return errReadOnly
		}
		if err := sameSite(r); err != nil {
			return err
		}
		return fn(w, r)
	}
}

// onSession is a request about a session that exists.
func (h *handler) onSession(fn func(http.ResponseWriter, *http.Request, *serve.Session) error) reply {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := txn.ParseSessionID(r.PathValue("id")); err != nil {
			return httpError{http.StatusBadRequest, err}
		}
		s, err := h.t.Session(r.Context(), principal(r), r.PathValue("db"), r.PathValue("id"))
		if err != nil {
			return err
		}
		return fn(w, r, s)
	}
}

// readJSON reads the body of a request; an empty one changes nothing.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return err
		}
		why := strings.TrimPrefix(err.Error(), "json: ")
		if typed := (*json.UnmarshalTypeError)(nil); errors.As(err, &typed) {
			why = fmt.Sprintf("%s cannot be a JSON %s", strings.TrimPrefix(typed.Field, "."), typed.Value)
		}
		return httpError{http.StatusBadRequest, fmt.Errorf("the body is not the expected JSON: %s", why)}
	}
	return nil
}

func (h *handler) begin(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		DB     string `json:"db"`
		Branch string `json:"branch"`
		Label  string `json:"label"`
	}
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	s, err := h.t.Begin(r.Context(), principal(r), in.DB, serve.BeginOptions{Branch: in.Branch, Label: in.Label, By: origin(r)})
	if err != nil {
		return err
	}
	e := s.Engine()
	h.o.Log.InfoContext(r.Context(), "begin", "database", in.DB, "who", principal(r).Name, "branch", e.Branch(), "session", e.ID().String())
	w.Header().Set("Location", "sessions/"+serve.EscapeSegment(in.DB)+"/"+e.ID().String())
	return writeStatus(w, http.StatusCreated, describeSession(e))
}

// origin describes the program that sends a request, as far as the request tells.
func origin(r *http.Request) txn.Origin {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = ""
	}
	program, _, _ := strings.Cut(r.UserAgent(), " ")
	return txn.Origin{Program: program, Host: host}
}

func (h *handler) listSessions(w http.ResponseWriter, r *http.Request) error {
	db, err := h.t.Database(r.Context(), r.URL.Query().Get("db"))
	if err != nil {
		return err
	}
	all, err := db.Sessions(r.Context())
	if err != nil {
		return err
	}
	out := []sessionJSON{}
	for _, s := range all {
		if principal(r).MayWrite(s.Branch) == nil {
			out = append(out, describeInfo(&s))
		}
	}
	return writeJSON(w, r, out)
}

// abort ends a session, also one that cannot be resumed.
func (h *handler) abort(w http.ResponseWriter, r *http.Request) error {
	id, err := txn.ParseSessionID(r.PathValue("id"))
	if err != nil {
		return httpError{http.StatusBadRequest, err}
	}
	ended, err := h.end(r, r.PathValue("db"), func(s *txn.SessionInfo) bool { return s.ID == id }, time.Time{})
	if err == nil && len(ended) == 0 {
		err = fmt.Errorf("session %v: %w", id, txn.ErrNoRef)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// abortOld ends the sessions that were last used before a time.
func (h *handler) abortOld(w http.ResponseWriter, r *http.Request) error {
	older := r.URL.Query().Get("older_than")
	before, err := txn.ParseTime(older)
	if age, ageErr := txn.ParseAge(older); ageErr == nil {
		before, err = time.Now().Add(-age), nil
	}
	if err != nil {
		return httpError{http.StatusBadRequest, fmt.Errorf("older_than must be an age, such as 7d, or a date: %w", err)}
	}
	ended, err := h.end(r, r.URL.Query().Get("db"), func(s *txn.SessionInfo) bool { return s.Used.Before(before) }, before)
	if err != nil {
		return err
	}
	return writeJSON(w, r, ended)
}

// end ends the sessions that a function chooses and that were last used before a time. It leaves
// out sessions that the principal may not end; with a zero time, which means any session, they are
// an error.
func (h *handler) end(r *http.Request, name string, choose func(*txn.SessionInfo) bool, before time.Time) (ended []sessionJSON, err error) {
	db, err := h.t.Writable(r.Context(), name)
	if err != nil {
		return nil, err
	}
	all, err := db.Sessions(r.Context())
	if err != nil {
		return nil, err
	}
	ended = []sessionJSON{}
	for _, s := range all {
		if !choose(&s) {
			continue
		}
		if err := principal(r).MayWrite(s.Branch); err != nil {
			if before.IsZero() {
				return nil, err
			}
			continue
		}
		done, err := db.AbortUnused(r.Context(), s.ID, before)
		if err != nil && !errors.Is(err, txn.ErrNoRef) { // that one has ended since
			return ended, err
		}
		if done {
			h.o.Log.InfoContext(r.Context(), "discard", "database", name, "who", principal(r).Name, "session", s.ID.String())
			ended = append(ended, describeInfo(&s))
		}
	}
	return ended, nil
}

func describeInfo(s *txn.SessionInfo) sessionJSON {
	return sessionJSON{ID: s.ID.String(), Branch: s.Branch, Base: s.Base.String(), Label: s.Label, Created: s.Created, Saved: s.Saved, Used: s.Used, Origin: s.By.Named()}
}

func (h *handler) status(w http.ResponseWriter, r *http.Request, s *serve.Session) error {
	e := s.Engine()
	changes := &changesJSON{Chunks: map[string]int{}, Keys: []string{}}
	for c, err := range e.Changes(r.Context(), "") {
		switch {
		case err != nil:
			return err
		case c.Coords != nil:
			if _, ok := changes.Chunks[c.Array]; ok || len(changes.Chunks) < maxChanges {
				changes.Chunks[c.Array]++
				continue
			}
			changes.More = true
		case len(changes.Keys) < maxChanges:
			changes.Keys = append(changes.Keys, c.Key)
		default:
			changes.More = true
		}
	}
	out := describeSession(e)
	out.Changes = changes
	return writeJSON(w, r, out)
}

// silent is a request that is answered without content.
func silent(do func(*serve.Session, context.Context) error) func(http.ResponseWriter, *http.Request, *serve.Session) error {
	return func(w http.ResponseWriter, r *http.Request, s *serve.Session) error {
		err := do(s, r.Context())
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
}

func (h *handler) commit(w http.ResponseWriter, r *http.Request, s *serve.Session) error {
	var in struct {
		Message    string            `json:"message"`
		Author     string            `json:"author"`
		Properties map[string]string `json:"properties"`
		DryRun     bool              `json:"dry_run"`
	}
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	c, err := s.Commit(r.Context(), txn.CommitOptions{Message: in.Message, Author: in.Author, Properties: in.Properties, DryRun: in.DryRun})
	if err != nil {
		return err
	}
	out := commitJSON{ID: c.ID.String(), Parents: []string{}, Author: c.Author, Time: c.Time, Message: c.Message, Properties: c.Properties}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.String())
	}
	return writeStatus(w, http.StatusOK, out)
}

// writeStatus answers a request that changed something.
func writeStatus(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
	return nil
}
