package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/mail"
	"net/url"
	"strconv"
)

// Alerts are sent to nobody unless they are configured. The log has them always.
type Alerts struct {
	Webhook *Webhook `yaml:"webhook" doc:"An address that is sent a JSON object for each alert."`
	Email   *Email   `yaml:"email" doc:"Mail for each alert."`
}

type Webhook struct {
	URL     SecretURL         `yaml:"url" doc:"Where alerts are posted."`
	Headers map[string]Secret `yaml:"headers" keys:"header" check:"header value" doc:"Headers sent with every alert, such as authorization."`
	Secret  Secret            `yaml:"secret" doc:"Signs the alerts, by HMAC-SHA256. Absent: they are not signed."`
}

type Email struct {
	SMTP     string   `yaml:"smtp" check:"address" doc:"The mail server, host:port."`
	Username string   `yaml:"username" doc:"Who logs in there. Absent: nobody does."`
	Password Secret   `yaml:"password" doc:"The password for it."`
	From     string   `yaml:"from" check:"mail" doc:"The sender's address."`
	To       []string `yaml:"to" check:"mail" doc:"Addresses of those who are told."`
	TLS      string   `yaml:"tls" enum:"starttls tls none" doc:"starttls begins plainly and is secured before anything is said, tls is secured from the start."`
}

func (e *Email) setDefaults() { e.TLS = "starttls" }

// SecretURL is an address whose path or query may be all that keeps others away: only its host is shown.
type SecretURL string

// Reveal is the whole of it, for the one place that calls it.
func (u SecretURL) Reveal() string { return string(u) }

func (u SecretURL) String() string {
	at, err := url.Parse(string(u))
	if u == "" || err != nil {
		return Secret(u).String()
	}
	return at.Scheme + "://" + at.Host + "/" + redacted
}

func (u SecretURL) GoString() string { return strconv.Quote(u.String()) }

// Format covers the verbs that would pass String by.
func (u SecretURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

func (u SecretURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

func (u SecretURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

func (u *SecretURL) parse(text string) error {
	if _, err := parseURL(text); err != nil {
		return err
	}
	*u = SecretURL(text)
	return nil
}

func testMail(text string) error {
	if _, err := mail.ParseAddress(text); err != nil {
		return errors.New("expected a mail address such as me@example.com")
	}
	return nil
}

func (d *decoder) validateAlerts(a *Alerts) {
	if w := a.Webhook; w != nil && w.URL == "" && !d.flawed[&a.Webhook] {
		d.complain(d.at[&a.Webhook], "webhook needs a url")
	}
	e := a.Email
	if e == nil || d.flawed[&a.Email] {
		return
	}
	switch {
	case e.SMTP == "" || e.From == "" || len(e.To) == 0:
		d.complain(d.at[&a.Email], "email needs smtp, from and to")
	case (e.Username == "") != (e.Password == ""):
		d.complain(d.at[&a.Email], "email needs both username and password, or none of them")
	case e.Password != "" && e.TLS == "none":
		d.complain(d.at[&e.TLS], "a password is not sent without TLS: use starttls or tls, or leave username and password out")
	}
}
