package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/coder/websocket"
)

// socket is a WebSocket that makes turns one after another.
type socket struct {
	conn  *websocket.Conn
	proxy *proxy
	sent  *atomic.Int64 // bytes on the connection, all in all
}

func dialSocket(ctx context.Context, p *proxy) (*socket, error) {
	s := &socket{proxy: p, sent: new(atomic.Int64)}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return countedConn{c, s.sent}, err
	}}
	var err error
	s.conn, _, err = websocket.Dial(ctx, "ws://"+p.addr+responsesPath, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport},
		HTTPHeader: http.Header{"Authorization": {"Bearer " + p.key}},
	})
	if err != nil {
		return nil, err
	}
	s.conn.SetReadLimit(1 << 20)
	return s, nil
}

func (s *socket) close() { s.conn.CloseNow() }

// turn sends a turn that is not to be stored, and reads its answer to the end. It
// returns the response's ID.
func (s *socket) turn(ctx context.Context, previous, input string) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.proxy.calls.Add(1)
	message := turnBody(`"type":"response.create","stream":true,"store":false,`+goesOn(previous), input)
	if err := s.conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		return "", err
	}
	for {
		_, data, err := s.conn.Read(ctx)
		if err != nil {
			return "", err
		}
		var event struct {
			Type     string `json:"type"`
			Response struct {
				ID string `json:"id"`
			} `json:"response"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return "", err
		}
		switch event.Type {
		case "response.completed":
			return event.Response.ID, nil
		case "error", "response.failed":
			return "", fmt.Errorf("%.1000s", data)
		}
	}
}

// countedConn counts what is written to it.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}
