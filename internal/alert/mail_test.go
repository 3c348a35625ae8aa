package alert

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

func mailTo(server string, how TLS) *Mail {
	return &Mail{Server: server, From: &mail.Address{Name: "Limen ü", Address: "limen@example.com"}, To: []*mail.Address{{Address: "a@example.com"}, {Address: "b@example.com"}}, TLS: how}
}

// mailServer takes one mail at a time, as far as it is told to.
type mailServer struct {
	net.Listener
	roots *x509.CertPool
	tls   *tls.Config
	// What it offers, and what it refuses.
	offers  []string
	refuses string // the first command that begins so
	said    chan []string
	mails   chan string
}

// newMailServer serves on a free port. With always, connections are secured from
// the start.
func newMailServer(t *testing.T, always bool, refuses string, offers ...string) *mailServer {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	certified.Close()
	s := &mailServer{tls: &tls.Config{Certificates: certified.TLS.Certificates}, roots: x509.NewCertPool(), offers: offers, refuses: refuses, said: make(chan []string, 9), mails: make(chan string, 9)}
	s.roots.AddCert(certified.Certificate())
	var err error
	if s.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	go func() {
		for {
			conn, err := s.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(time.Minute))
			if always {
				conn = tls.Server(conn, s.tls)
			}
			s.said <- s.serve(conn)
		}
	}()
	return s
}

// serve speaks with one client and returns what it said.
func (s *mailServer) serve(conn net.Conn) (said []string) {
	defer func() { conn.Close() }()
	c := textproto.NewConn(conn)
	c.PrintfLine("220 test")
	for {
		line, err := c.ReadLine()
		if err != nil {
			return said
		}
		said = append(said, line)
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		switch {
		case s.refuses != "" && strings.HasPrefix(line, s.refuses):
			c.PrintfLine("550 no")
		case verb == "EHLO":
			c.PrintfLine("250-test")
			for _, offer := range s.offers {
				c.PrintfLine("250-%s", offer)
			}
			c.PrintfLine("250 8BITMIME")
		case verb == "STARTTLS":
			c.PrintfLine("220 go on")
			conn = tls.Server(conn, s.tls)
			c = textproto.NewConn(conn)
		case line == "AUTH LOGIN":
			for _, ask := range []string{"Username:", "Password:"} {
				c.PrintfLine("334 %s", base64.StdEncoding.EncodeToString([]byte(ask)))
				answer, _ := c.ReadLine()
				text, _ := base64.StdEncoding.DecodeString(answer)
				said = append(said, string(text))
			}
			c.PrintfLine("235 in")
		case verb == "AUTH":
			c.PrintfLine("235 in")
		case verb == "DATA":
			c.PrintfLine("354 go on")
			text, _ := io.ReadAll(io.LimitReader(c.DotReader(), 1<<20))
			s.mails <- string(text)
			c.PrintfLine("250 taken")
		case verb == "QUIT":
			c.PrintfLine("221 bye")
			return said
		default:
			c.PrintfLine("250 ok")
		}
	}
}

func TestMail(t *testing.T) {
	const plain = "AUTH PLAIN AHVzZXIAY2FuYXJ5" // \0user\0canary
	transaction := []string{"MAIL FROM:<limen@example.com> BODY=8BITMIME", "RCPT TO:<a@example.com>", "RCPT TO:<b@example.com>", "DATA", "QUIT"}
	for _, c := range []struct {
		name   string
		tls    TLS
		user   string
		offers []string
		refuse string
		said   []string // before the transaction, or all of it where that fails
		fails  string
	}{
		{"plain", Never, "", nil, "", []string{"EHLO localhost"}, ""},
		{"secured later", StartTLS, "", []string{"STARTTLS"}, "", []string{"EHLO localhost", "STARTTLS", "EHLO localhost"}, ""},
		{"secured", Always, "user", []string{"AUTH LOGIN PLAIN"}, "", []string{"EHLO localhost", plain}, ""},
		{"logged in later", StartTLS, "user", []string{"STARTTLS", "AUTH PLAIN"}, "", []string{"EHLO localhost", "STARTTLS", "EHLO localhost", plain}, ""},
		{"the older way", StartTLS, "user", []string{"STARTTLS", "AUTH LOGIN XOAUTH2"}, "", []string{"EHLO localhost", "STARTTLS", "EHLO localhost", "AUTH LOGIN", "user", "canary"}, ""},
		{"not secured", StartTLS, "user", []string{"AUTH PLAIN LOGIN"}, "", []string{"EHLO localhost"}, "no STARTTLS"},
		{"a refused login", Always, "user", []string{"AUTH PLAIN"}, "AUTH", []string{"EHLO localhost", plain, "*", "QUIT"}, "550"},
		{"a refused sender", Never, "", nil, "MAIL", []string{"EHLO localhost", transaction[0]}, "550"},
		{"a refused receiver", Never, "", nil, "RCPT TO:<b", []string{"EHLO localhost", transaction[0], transaction[1], transaction[2]}, "550"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newMailServer(t, c.tls == Always, c.refuse, c.offers...)
			s := New(slog.New(slog.DiscardHandler))
			s.roots = server.roots
			to := mailTo(server.Addr().String(), c.tls)
			if to.Username = c.user; c.user != "" {
				to.Password = "canary"
			}
			err := s.try(t.Context(), &s.ways[1], &Settings{Mail: to}, newMessage(&reached, time.Now()))
			want := c.said
			if c.fails == "" {
				want = append(want, transaction...)
			}
			if got := text(err); c.fails == "" && err != nil || !strings.Contains(got, c.fails) || strings.Contains(got, "canary") {
				t.Errorf("the error is %q, want %q", got, c.fails)
			}
			if said := <-server.said; strings.Join(said, "\n") != strings.Join(want, "\n") {
				t.Errorf("it was said\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
			}
			if n := len(server.mails); c.fails == "" && n != 1 || c.fails != "" && n != 0 {
				t.Errorf("%d mails were sent", n)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestMailWithoutTrust has a server that shows a certificate of nobody known.
func TestMailWithoutTrust(t *testing.T) {
	for _, how := range []TLS{StartTLS, Always} {
		server := newMailServer(t, how == Always, "", "STARTTLS", "AUTH PLAIN")
		s := New(slog.New(slog.DiscardHandler))
		s.roots = x509.NewCertPool()
		to := mailTo(server.Addr().String(), how)
		to.Username, to.Password = "user", "canary"
		err := s.try(t.Context(), &s.ways[1], &Settings{Mail: to}, newMessage(&reached, time.Now()))
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got %v, want an error about the certificate", err)
		}
		if said := strings.Join(<-server.said, "\n"); strings.Contains(said, "AUTH") {
			t.Errorf("it was said\n%s", said)
		}
	}
}

// TestMailOnTheWire reads a mail as its receiver does. A name that would be more
// fields of the header is not.
func TestMailOnTheWire(t *testing.T) {
	server := newMailServer(t, false, "")
	s, _ := sender(t, &Settings{Mail: mailTo(server.Addr().String(), Never)})
	a := reached
	a.Name = "Ali\r\nBcc: evil@example.com\r\n\r\né"
	s.Send(a)
	raw := <-server.mails
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v:\n%s", err, raw)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != "Limen: "+a.Name+" has spent $4.01 of 5/month@Europe/Berlin" {
		t.Errorf("the subject is %q (%v)", subject, err)
	}
	from, err := m.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != "Limen ü" || m.Header.Get("Bcc") != "" || m.Header.Get("To") != "<a@example.com>, <b@example.com>" {
		t.Errorf("the header is %v (%v)", m.Header, err)
	}
	if date, err := m.Header.Date(); err != nil || time.Since(date) > time.Minute || !strings.HasSuffix(m.Header.Get("Message-Id"), "@example.com>") {
		t.Errorf("the header is %v (%v)", m.Header, err)
	}
	body, err := io.ReadAll(io.LimitReader(quotedprintable.NewReader(m.Body), 1<<20))
	if want := "of the budget 5/month@Europe/Berlin, $4 or more. It begins anew at 2026-12-01 00:00 UTC.\n"; err != nil || !strings.HasSuffix(strings.ReplaceAll(string(body), "\r", ""), want) {
		t.Errorf("the body is %q (%v)", body, err)
	}
}
