package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/llm"
)

// root is what all paths of the API begin with.
const root = "/api/v1"

// Server serves the operations of an API.
type Server struct {
	api    *API
	table  []operation
	origin *http.CrossOriginProtection

	failures failures
}

// NewServer returns the server of an API.
func NewServer(api *API) *Server {
	return &Server{api: api, table: api.table(), origin: http.NewCrossOriginProtection()}
}

// request is one that an operation serves.
type request struct {
	*http.Request
	who    *keys.Operator // nil where nobody is known
	header http.Header    // of the answer
	object string         // what was changed, where its path does not say
	login  *keys.Login    // that was tried
}

// stream is an answer that is no document.
type stream struct {
	kind  string
	file  string // that it is saved as
	write func(io.Writer) error
}

// Bounds of a body, and of the time that it may take to come.
const (
	maxRequest = 1 << 20
	maxLogin   = 4 << 10 // of who is not known yet
	bodyTime   = 30 * time.Second
)

// Serve answers a request that came with a credential, "" for none, or with the
// cookie of a session. It returns an error where it has not answered.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, credential string) error {
	protect(w.Header())
	if err := s.byOurName(r, credential); err != nil {
		return err
	}
	op, err := s.find(r)
	if err != nil {
		// Who is not known is not told what there is.
		if _, unknown := s.identify(r, credential); unknown != nil {
			return unknown
		}
		return err
	}
	if op.access.unknown {
		if err := s.fromOurPages(r); err != nil {
			return err
		}
		return s.run(w, r, op, nil)
	}
	who, err := s.identify(r, credential)
	if err != nil {
		return err
	}
	if !op.access.allows(who) {
		return notAllowed(op)
	}
	return s.run(w, r, op, who)
}

// protect sets what holds of every answer: no browser takes it for a page, or
// lets one of another site have it.
func protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Authorization, Cookie")
}

// byOurName refuses a browser that came by a name of somebody else, who may
// have pointed it here: all that it says is then said by a page of theirs. A
// credential that no browser sends by itself is proof enough.
func (s *Server) byOurName(r *http.Request, credential string) error {
	if credential != "" || s.api.OurName == nil || s.api.OurName(r) {
		return nil
	}
	return llm.Errorf(llm.WrongHost, "Limen does not know itself by the name of this request. If it is right, set public_url in the configuration.")
}

// notAllowed is the refusal of an operation to somebody who is known.
func notAllowed(op *operation) error {
	e := llm.Errorf(llm.Forbidden, "You may not use %s %s%s.", op.method, root, op.path)
	if names := op.access.scopes.Names(); len(names) > 0 {
		e.Message += " A token for it has one of the scopes " + strings.Join(names, ", ") + "."
	}
	e.Code = "operation_not_allowed"
	return e
}

// Local serves those who need no credential, since they may do everything
// anyway: it belongs on no listener that others can reach.
func (s *Server) Local(via keys.Via) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op, err := s.find(r)
		if err == nil {
			err = s.run(w, r, op, &keys.Operator{Name: string(via), Role: keys.Owner, Via: via})
		}
		if err != nil {
			e := llm.AsError(err)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(openai.Status(e))
			w.Write(append(openai.AppendError(nil, e), '\n'))
		}
	})
}

// find returns the operation of a request, and sets what its path names.
func (s *Server) find(r *http.Request) (*operation, error) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if path, ok := strings.CutPrefix(r.URL.EscapedPath(), root); ok {
		for i := range s.table {
			if op := &s.table[i]; op.method == method && matches(op.path, path, r) {
				return op, nil
			}
		}
	}
	return nil, llm.Errorf(llm.NotFound, "There is no admin operation %s %s.", r.Method, r.URL.Path)
}

// matches reports whether a path is one of a pattern, and sets what it names.
func matches(pattern, path string, r *http.Request) bool {
	if !strings.Contains(pattern, "{") {
		return path == pattern
	}
	wanted, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(wanted) != len(got) {
		return false
	}
	for i, segment := range wanted {
		name, isName := strings.CutPrefix(segment, "{")
		if !isName && segment != got[i] {
			return false
		}
		value, err := url.PathUnescape(got[i])
		if isName && (err != nil || value == "") {
			return false
		}
		if isName {
			r.SetPathValue(strings.TrimSuffix(name, "}"), value)
		}
	}
	return true
}

// identify finds out who a request is from. A credential goes before a cookie,
// which browsers send by themselves: what has no other is looked at more
// closely.
func (s *Server) identify(r *http.Request, credential string) (*keys.Operator, error) {
	cookie, err := r.Cookie(sessionCookie)
	if credential != "" || err != nil {
		return s.api.Operators.Bearer(r.Context(), credential, keys.AddressOf(r.RemoteAddr))
	}
	if err := s.fromOurPages(r); err != nil {
		return nil, err
	}
	return s.api.Operators.Session(r.Context(), cookie.Value, keys.AddressOf(r.RemoteAddr))
}

// fromOurPages refuses what a page of another site may have a browser send.
func (s *Server) fromOurPages(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if err := s.origin.Check(r); err != nil {
		return llm.Errorf(llm.Forbidden, "A page of another site asked for this; it is not done.")
	}
	kind := r.Header.Get("Content-Type")
	if kind == "" && r.ContentLength == 0 {
		return nil // no form is sent so
	}
	if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
		return llm.Errorf(llm.Forbidden, "With a session, changes are sent as JSON, with the content type application/json.")
	}
	return nil
}

// run has an operation answer.
func (s *Server) run(w http.ResponseWriter, r *http.Request, op *operation, who *keys.Operator) error {
	sent, err := readBody(w, r, op)
	if err != nil {
		return err
	}
	in := &request{Request: r, who: who, header: w.Header()}
	var document any
	if op.change {
		document, err = s.audited(op, in, sent)
	} else {
		document, err = op.serve(in)
	}
	var body []byte
	if err == nil && isDocument(document) {
		body, err = json.Marshal(document)
	}
	if err != nil {
		if llm.AsError(err).Kind == llm.Internal {
			s.api.Log.Error("an admin operation failed", "operation", op.method+" "+op.path, "error", err)
		}
		if bad, ok := errors.AsType[*config.Errors](err); ok {
			refuseDocument(w, llm.AsError(err), bad)
			return nil
		}
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if out, ok := document.(*redirect); ok {
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Location", out.to)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	if out, ok := document.(stream); ok {
		h.Set("Content-Type", out.kind)
		h.Set("Content-Disposition", `attachment; filename="`+out.file+`"`)
		if err := out.write(w); err != nil {
			s.api.Log.Warn("an export broke off", "error", err)
			panic(http.ErrAbortHandler) // what is cut must not look whole
		}
		return nil
	}
	h.Set("Content-Type", "application/json")
	w.Write(append(body, '\n'))
	return nil
}

// refuseDocument answers with what is wrong with a configuration.
func refuseDocument(w http.ResponseWriter, e *llm.Error, bad *config.Errors) {
	var out Failure
	out.Error.Message, out.Error.Type, out.Error.Code, out.Error.Problems = e.Message, "invalid_request_error", &e.Code, bad.Problems
	body, _ := json.Marshal(out) // texts and numbers cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(openai.Status(e))
	w.Write(append(body, '\n'))
}

// isDocument reports whether an answer is one as JSON.
func isDocument(answer any) bool {
	switch answer.(type) {
	case stream, *redirect:
		return false
	}
	return true
}

// readBody makes the body of a request one that has come.
func readBody(w http.ResponseWriter, r *http.Request, op *operation) ([]byte, error) {
	limit := int64(maxRequest)
	if op.access.unknown {
		limit = maxLogin
	}
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(bodyTime)) // where there is a connection
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	c.SetReadDeadline(time.Time{})
	switch _, tooLong := errors.AsType[*http.MaxBytesError](err); {
	case tooLong:
		return nil, llm.Errorf(llm.TooLarge, "The body of this request has at most %d bytes.", limit)
	case err != nil:
		return nil, llm.Errorf(llm.SlowBody, "The body of the request did not come whole.")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
