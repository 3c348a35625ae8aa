package gateway

import (
	"io"
	"net/http"

	"github.com/limen-gateway/limen/internal/dialect"
)

// maxRounds is how often an upstream that pauses is asked to go on with one
// answer. A client that speaks the upstream's own dialect is told of the pause
// instead.
const maxRounds = 5

// resume asks the upstream to go on with an answer that it paused; nil when it
// did not.
func (a *attempt) resume(closed bool) (*http.Response, error) {
	if !a.translated() {
		return nil, nil
	}
	next := a.way.translation.Resume(closed)
	if next == nil {
		return nil, nil
	}
	out := said(next)
	defer out.body.Done()
	return a.post(out)
}

// rounds are the frames of one answer, for which the upstream may want several
// requests.
type rounds struct {
	dialect.Frames
	of   *attempt
	body io.Closer // of the request that is read; nil for the first, which is its caller's
}

// Fill implements dialect.Frames.
func (r *rounds) Fill() error {
	if resumed, err := r.resume(false); resumed || err != nil {
		return err
	}
	err := r.Frames.Fill()
	if err == io.EOF {
		if resumed, failed := r.resume(true); resumed || failed != nil {
			return failed
		}
	}
	return err
}

// resume goes on with the frames of another request, if there is to be one.
func (r *rounds) resume(closed bool) (bool, error) {
	resp, err := r.of.resume(closed)
	if resp == nil || err != nil {
		return false, err
	}
	r.Close()
	r.body = resp.Body
	r.Frames = r.of.way.outbound.Frames(resp.Body, r.of.set.MaxEvent)
	return true, nil
}

// Close implements dialect.Frames.
func (r *rounds) Close() {
	r.Frames.Close()
	if r.body != nil {
		r.body.Close()
	}
}
