package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// The turns of a socket: the second goes on from the first, which the
// connection remembers.
const (
	socketFirst = `{"type":"response.create","model":"{{model}}","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"` + question + `"}]}],"store":false}`
	socketNext  = `{"type":"response.create","model":"{{model}}","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Once more."}]}],"previous_response_id":"{{id}}","store":false}`
)

var socketUsers = []string{"codex (with its own provider, or supports_websockets)"}

// Faults of sockets.
var (
	socketBinary = &fault{"events come as binary messages", "send one text message for every event", []string{"codex"}}
	socketCut    = &fault{"the socket closed before the response ended", "keep the socket open for the next request; close it only after an error event", []string{"codex"}}
)

func (v *visit) responsesSocket(ctx context.Context) (verdict, error) {
	begun := time.Now()
	found, err := v.talk(ctx, nil, []string{socketFirst, socketNext})
	if err == nil && len(found.faults) == 0 {
		found.detail = fmt.Sprintf("2 turns in %d ms, the second by previous_response_id", time.Since(begun).Milliseconds())
	}
	return found, err
}

// talk opens a socket and takes turns by it, each filled in with what the one
// before said.
func (v *visit) talk(ctx context.Context, header http.Header, turns []string) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if header == nil {
		header = v.usual(v.Key)
	}
	c, resp, err := websocket.Dial(ctx, v.Base+responsesPath, &websocket.DialOptions{HTTPClient: v.Client, HTTPHeader: header})
	if err != nil {
		return verdict{}, refusedSocket(resp, err)
	}
	defer c.CloseNow()
	c.SetReadLimit(maxBody)
	v.said = said{}
	for _, turn := range turns {
		message, err := v.fill(turn)
		if err != nil {
			return verdict{}, err
		}
		if err := c.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
			return verdict{}, socketCut
		}
		events, err := readMessages(ctx, c)
		if err != nil {
			return verdict{}, err
		}
		s, _, faults := readEvents(events, false)
		if faults = warmedUp(turn, faults); len(faults) > 0 {
			return verdict{faults: faults}, nil
		}
		v.said = s
	}
	c.Close(websocket.StatusNormalClosure, "")
	return verdict{}, nil
}

// warmedUp leaves out that a turn has no output which asked for none.
func warmedUp(turn string, faults []*fault) (left []*fault) {
	var wish struct {
		Generate *bool `json:"generate"`
	}
	if json.Unmarshal([]byte(turn), &wish) != nil || wish.Generate == nil || *wish.Generate {
		return faults
	}
	for _, f := range faults {
		if f != respEmptyOutput && f != respNoUsage {
			left = append(left, f)
		}
	}
	return left
}

// readMessages reads the events of one response.
func readMessages(ctx context.Context, c *websocket.Conn) (events [][]byte, err error) {
	for size := 0; size < maxBody; {
		kind, data, err := c.Read(ctx)
		if err != nil {
			return nil, socketCut
		}
		if kind != websocket.MessageText {
			return nil, socketBinary
		}
		size += len(data)
		events = append(events, data)
		if last(data) || isError(data) {
			return events, nil
		}
	}
	return nil, streamTooLarge
}

func isError(data []byte) bool {
	var event struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(data, &event) == nil && event.Type == "error"
}

// refusedSocket tells a server without sockets from one where they fail.
func refusedSocket(resp *http.Response, err error) error {
	switch {
	case resp == nil || resp.StatusCode == http.StatusSwitchingProtocols:
		return &fault{"the handshake failed: " + err.Error(), "look whether a proxy on the way lets WebSockets through", socketUsers}
	case resp.StatusCode == http.StatusUpgradeRequired:
		return &errAbsent{"the server has no WebSocket, and says so with HTTP 426: clients go on over HTTP at once", "", socketUsers}
	case resp.StatusCode == http.StatusOK || resp.StatusCode >= http.StatusInternalServerError:
		return &fault{fmt.Sprintf("the upgrade to a WebSocket is answered with HTTP %d: Codex tries seven times before it goes on over HTTP", resp.StatusCode), "answer it with HTTP 426, and let proxies pass Upgrade on", []string{"codex"}}
	}
	return &errAbsent{fmt.Sprintf("the server has no WebSocket (HTTP %d): Codex tries seven times before it goes on over HTTP", resp.StatusCode), "answer the upgrade with HTTP 426", socketUsers}
}
