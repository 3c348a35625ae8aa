//go:build !unix

package http1

import (
	"net"
	"time"
)

// alive reports whether an idle connection can serve: the peer has neither
// closed it nor said anything on it.
func alive(c net.Conn) bool {
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return false
	}
	var b [1]byte
	_, err := c.Read(b[:])
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout() && c.SetReadDeadline(time.Time{}) == nil
}
