package upstream

import (
	"context"
	"net"
	"net/http"
)

// Object sends a request without a body, about something that the upstream
// keeps. The path is escaped, and may have a query; stream only sets Accept.
func (u *Upstream) Object(ctx context.Context, method, path string, stream bool) (*http.Response, error) {
	header := u.json
	if stream {
		header = u.sse
	}
	if u.sign != nil {
		header = header.Clone()
	}
	return u.bare(ctx, method, path, header)
}

// bare sends a request without a body. A signature changes header.
func (u *Upstream) bare(ctx context.Context, method, path string, header http.Header) (*http.Response, error) {
	at, err := u.at(path)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{Method: method, URL: at, Host: u.base.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if method == http.MethodPost {
		req.Body = http.NoBody // so that a length is sent
	}
	if u.sign != nil {
		if err := u.sign(req, nil); err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} // as if not reached: it had nothing of the request
		}
	}
	resp, err := u.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return resp, decompress(resp)
}
