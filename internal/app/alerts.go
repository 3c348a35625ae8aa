package app

import (
	"net/mail"

	"github.com/limen-gateway/limen/internal/alert"
	"github.com/limen-gateway/limen/internal/config"
)

// securities are the words for how a connection to a mail server is secured.
var securities = map[string]alert.TLS{"starttls": alert.StartTLS, "tls": alert.Always, "none": alert.Never}

// alertsOf is who is told of alerts.
func (a *app) alertsOf(cfg *config.Config) (*alert.Settings, error) {
	set := &alert.Settings{UserAgent: "limen/" + a.opts.Version}
	if w := cfg.Alerts.Webhook; w != nil {
		set.Webhook = &alert.Webhook{URL: w.URL.Reveal(), Header: plain(w.Headers), Secret: w.Secret.Reveal()}
	}
	e := cfg.Alerts.Email
	if e == nil {
		return set, nil
	}
	set.Mail = &alert.Mail{Server: e.SMTP, Username: e.Username, Password: e.Password.Reveal(), TLS: securities[e.TLS]}
	var err error
	if set.Mail.From, err = mail.ParseAddress(e.From); err != nil {
		return nil, err
	}
	for _, text := range e.To {
		to, err := mail.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		set.Mail.To = append(set.Mail.To, to)
	}
	return set, nil
}
