package alert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/upstream"
)

// Mail is how alerts are sent by mail.
type Mail struct {
	Server             string // host:port
	Username, Password string // "": nobody logs in
	From               *mail.Address
	To                 []*mail.Address
	TLS                TLS
}

// TLS says how the connection to a mail server is secured.
type TLS uint8

// The ways.
const (
	StartTLS TLS = iota // before anything is said
	Always              // from the start
	Never
)

var errNoStartTLS = errors.New("the mail server offers no STARTTLS: set tls to tls or none")

// mail sends a message to all who are to have it.
func (s *Sender) mail(ctx context.Context, set *Settings, m *message) (err error) {
	to := set.Mail
	c, err := s.dial(ctx, to)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Mail(to.From.Address); err != nil {
		return err
	}
	for _, one := range to.To {
		if err := c.Rcpt(one.Address); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(to.compose(m)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	c.Quit() // it has the mail
	return nil
}

// dial connects to the server, secures the connection and logs in.
func (s *Sender) dial(ctx context.Context, to *Mail) (*smtp.Client, error) {
	host, _, err := net.SplitHostPort(to.Server)
	if err != nil {
		return nil, err
	}
	conn, err := upstream.DialTools(tryTime, false)(ctx, "tcp", to.Server)
	if err != nil {
		return nil, err
	}
	until, _ := ctx.Deadline()
	conn.SetDeadline(until)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	secure := &tls.Config{ServerName: host, RootCAs: s.roots}
	if to.TLS == Always {
		conn = tls.Client(conn, secure)
	}
	c, err := smtp.NewClient(&stopping{conn, stop}, host)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if err := to.begin(c, secure); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// stopping is a connection that nothing ends any more once it is closed.
type stopping struct {
	net.Conn
	stop func() bool
}

func (s *stopping) Close() error {
	s.stop()
	return s.Conn.Close()
}

func (to *Mail) begin(c *smtp.Client, secure *tls.Config) error {
	if to.TLS == StartTLS {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return errNoStartTLS
		}
		if err := c.StartTLS(secure); err != nil {
			return err
		}
	}
	if to.Username == "" {
		return nil
	}
	_, offered := c.Extension("AUTH")
	if !strings.Contains(offered, "PLAIN") && strings.Contains(offered, "LOGIN") {
		return c.Auth(&login{to.Username, to.Password})
	}
	return c.Auth(smtp.PlainAuth("", to.Username, to.Password, secure.ServerName))
}

// login is the way to log in of servers that know no better one.
type login struct{ username, password string }

// Start implements smtp.Auth.
func (l *login) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS {
		return "", nil, errors.New("a password is not sent without TLS")
	}
	return "LOGIN", nil, nil
}

// Next implements smtp.Auth.
func (l *login) Next(prompt []byte, more bool) ([]byte, error) {
	switch {
	case !more:
		return nil, nil
	case strings.HasPrefix(strings.ToLower(string(prompt)), "user"):
		return []byte(l.username), nil
	case strings.HasPrefix(strings.ToLower(string(prompt)), "pass"):
		return []byte(l.password), nil
	}
	return nil, fmt.Errorf("the mail server asks for %.40q to log in", prompt)
}

// compose is the mail as it is sent.
func (to *Mail) compose(m *message) []byte {
	var b bytes.Buffer
	list := make([]string, len(to.To))
	for i, one := range to.To {
		list[i] = one.String()
	}
	_, domain, _ := strings.Cut(to.From.Address, "@")
	subject := mime.QEncoding.Encode("utf-8", fmt.Sprintf("Limen: %s has spent $%s of %s", m.Name, m.Spent, m.Budget))
	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\nMessage-ID: <%s@%s>\r\n",
		to.From, strings.Join(list, ", "), subject, m.Time.Format(time.RFC1123Z), m.ID, domain)
	b.WriteString("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\nAuto-Submitted: auto-generated\r\n\r\n")
	w := quotedprintable.NewWriter(&b)
	fmt.Fprintf(w, "%s\n", m.Text)
	w.Close()
	return b.Bytes()
}
