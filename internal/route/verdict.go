package route

import (
	"strconv"

	"github.com/limen-gateway/limen/internal/llm"
)

// blame is whose failure it was.
type blame uint8

const (
	none blame = iota // it went well
	nobody
	ofTarget
	ofAccount
)

// verdict is what an outcome says.
type verdict struct {
	blame  blame
	fault  fault
	kind   llm.Kind
	word   string // as in Step.Reason
	retry  bool   // at another target
	again  bool   // at the same
	unsent bool   // the upstream had nothing of it
}

// judge decides who is to blame for an outcome and whether another attempt
// makes sense.
func (o *Outcome) judge() verdict {
	e := o.Err
	if o.Canceled || e != nil && e.Kind == llm.Canceled {
		return verdict{blame: nobody, word: "canceled"}
	}
	if e == nil {
		return verdict{}
	}
	v := verdict{blame: nobody, kind: e.Kind, word: e.Kind.String()}
	if e.Status != 0 {
		v.word = strconv.Itoa(e.Status)
	}
	switch e.Kind {
	case llm.UpstreamQuota:
		v.blame, v.fault, v.retry = ofAccount, refused, true
	case llm.UpstreamAuth:
		v.blame, v.retry = ofAccount, true
		if e.Status != 403 { // which may be about this request, or this model
			v.fault = refused
		}
	case llm.RateLimited:
		if e.Status == 0 { // a limit of ours
			return v
		}
		v.blame, v.fault, v.retry = ofTarget, limited, true
	case llm.Overloaded, llm.Upstream:
		o.broken(&v)
	case llm.UpstreamTimeout:
		v.blame, v.retry = ofTarget, true
		if e.Status == 0 {
			v.word = "timeout"
		}
	case llm.UpstreamTruncated:
		v.blame, v.retry, v.again, v.word = ofTarget, true, true, "broken off"
	case llm.UpstreamInvalid:
		v.blame, v.retry, v.word = ofTarget, true, "invalid"
	case llm.Unsupported:
		if e.Status == 0 {
			v.retry, v.unsent, v.word = true, true, "cannot"
		}
	}
	return v
}

// broken judges an upstream that failed, or could not be reached.
func (o *Outcome) broken(v *verdict) {
	e := o.Err
	switch {
	case e.Status == 0 && e.Kind == llm.Overloaded: // no room for it with the provider
		v.unsent, v.word = true, "full"
	case e.Status == 0 && !o.Dialed:
		v.blame, v.word, v.again = ofAccount, "connect", true
	case e.Status == 0:
		v.blame, v.word, v.again = ofTarget, "broken off", true
	default:
		v.blame, v.again = ofTarget, e.Status >= 500 && o.Wait == 0
	}
	v.retry = true
}

// learn notes what came of a call. That the upstream answered at all speaks for
// the account.
func (h *Health) learn(b blame, probe claimed, f failure, answered bool, now int64) {
	switch b {
	case none:
		h.succeeded(now, f.began)
		h.account.succeeded(now, f.began)
		return
	case ofTarget:
		f.probe = probe.target
		h.failedOnce(now, f)
		probe.target = false
	case ofAccount:
		f.probe = probe.account
		h.account.failedOnce(now, f)
		probe.account, answered = false, false
	}
	if answered {
		h.account.succeeded(now, f.began)
		probe.account = false
	}
	h.release(probe)
}

// release gives probes back that found out nothing.
func (h *Health) release(probe claimed) {
	if probe.target {
		h.breaker.release()
	}
	if probe.account {
		h.account.release()
	}
}

// abandon gives a claim back that was not used.
func (h *Health) abandon(probe claimed) {
	h.inFlight.Add(-1)
	h.release(probe)
}

// well reports whether neither the target nor its account is sick.
func (h *Health) well() bool { return h.until.Load() == 0 && h.account.until.Load() == 0 }
