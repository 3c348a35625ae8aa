package state

// Session is the memory of one socket: its last turns, those too that the
// client does not want stored. It is used by one goroutine at a time.
type Session struct {
	turns map[string]sessionTurn // by the ID of the response
	order []string               // the oldest first
}

type sessionTurn struct {
	past past
	at   place // in the store; zero when it is not there
}

// sessionTurns is how many turns a socket can go on from.
const sessionTurns = 16

// NewSession makes the memory of a socket.
func NewSession() *Session { return &Session{turns: map[string]sessionTurn{}} }

func (s *Session) keep(id string, p past, at place) {
	s.turns[id] = sessionTurn{p, at}
	s.order = append(s.order, id)
	if len(s.order) > sessionTurns {
		delete(s.turns, s.order[0])
		s.order = s.order[1:]
	}
}

// Forget drops a turn that could not be gone on from.
func (s *Session) Forget(id string) { delete(s.turns, id) }
