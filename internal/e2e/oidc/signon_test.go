package oidc

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/e2e/oidc/provider"
)

// browser keeps the gateway's cookies, and goes where it is sent one step at a
// time.
type browser struct {
	t       *testing.T
	gateway *gateway
	cookies map[string]*http.Cookie
}

func (g *gateway) browser(t *testing.T) *browser {
	return &browser{t, g, map[string]*http.Cookie{}}
}

var oneStep = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       time.Minute,
}

// do sends a request, with the cookies where it is to the gateway.
func (b *browser) do(method, at string, form url.Values) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	ours := strings.HasPrefix(at, b.gateway.origin+"/")
	if ours {
		for _, c := range b.cookies {
			r.AddCookie(c)
		}
	}
	answer, err := oneStep.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range answer.Cookies() {
		if ours && c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else if ours {
			b.cookies[c.Name] = c
		}
	}
	return answer, string(body)
}

// begin goes to the provider, and returns where that is.
func (b *browser) begin() string {
	b.t.Helper()
	answer, body := b.do("GET", b.gateway.origin+"/api/v1/login/oidc", nil)
	to := answer.Header.Get("Location")
	if answer.StatusCode != http.StatusSeeOther || to == "" {
		b.t.Fatalf("a login begins with %d %s", answer.StatusCode, body)
	}
	return to
}

var action = regexp.MustCompile(`action="([^"]+)"`)

// choose says at the provider who one is, and returns where the browser is sent.
func (b *browser) choose(at, person string) string {
	b.t.Helper()
	_, page := b.do("GET", at, nil)
	found := action.FindStringSubmatch(page)
	if found == nil {
		b.t.Fatalf("the provider shows %s", page)
	}
	answer, body := b.do("POST", found[1], url.Values{"person": {person}})
	if answer.Header.Get("Location") == "" {
		b.t.Fatalf("the provider answers %d %s", answer.StatusCode, body)
	}
	return answer.Header.Get("Location")
}

// comeBack goes to the callback, and returns what the console is told: "" is
// nothing.
func (b *browser) comeBack(at string) string {
	b.t.Helper()
	answer, body := b.do("GET", at, nil)
	to, problem, _ := strings.Cut(answer.Header.Get("Location"), "?login=")
	if answer.StatusCode != http.StatusSeeOther || to != b.gateway.origin+"/console/" || answer.Header.Get("Cache-Control") != "no-store" {
		b.t.Fatalf("the callback answers %d %q %s", answer.StatusCode, answer.Header, body)
	}
	return problem
}

// logIn goes all the way.
func (b *browser) logIn(person string) string {
	b.t.Helper()
	return b.comeBack(b.choose(b.begin(), person))
}

// whoAmI is the user of the session, as JSON, or the status.
func (b *browser) whoAmI() string {
	b.t.Helper()
	answer, body := b.do("GET", b.gateway.origin+"/api/v1/session", nil)
	if answer.StatusCode != http.StatusOK {
		return answer.Status
	}
	return strings.TrimSpace(body)
}

func user(name, role string) string { return fmt.Sprintf(`{"user":{"name":%q,"role":%q}}`, name, role) }

const nobody = "401 Unauthorized"

func verified(email string, groups ...string) provider.Claims {
	return provider.Claims{"email": email, "email_verified": true, "groups": groups}
}

func TestSignOn(t *testing.T) {
	p := provider.New()
	t.Cleanup(p.Close)
	g := start(t, "name: Example, issuer: "+p.URL+", client_id: "+provider.ClientID+", client_secret: "+provider.Secret+
		", groups: {ops: admin, research: {role: member, team: lab}}")
	g.admin(t, "POST", "/teams", `{"name":"lab"}`)

	t.Run("provider away", func(t *testing.T) {
		if asked := p.Asked(); asked != 0 {
			t.Errorf("the provider was asked %d times though nobody logs in", asked)
		}
		if got := g.admin(t, "GET", "/login", ""); got != `{"password":true,"oidc":{"name":"Example"}}` {
			t.Errorf("the ways in are %s", got)
		}
		if to := g.browser(t).begin(); to != g.origin+"/console/?login=away" {
			t.Errorf("sent to %s", to)
		}
		if err := p.Register(g.origin + "/api/v1/login/oidc/callback"); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return strings.HasPrefix(g.browser(t).begin(), p.URL+"/authorize?") })
	})

	t.Run("login", func(t *testing.T) {
		p.Set("ann", verified("ann@example.com", "staff", "ops", "research"))
		b := g.browser(t)
		at := b.begin()
		query, err := url.ParseQuery(at[strings.Index(at, "?")+1:])
		if err != nil || query.Get("code_challenge_method") != "S256" || query.Get("nonce") == "" || query.Get("state") == "" || query.Get("response_type") != "code" {
			t.Errorf("the provider is asked %s", at)
		}
		if c := b.cookies["__Host-limen-login"]; c == nil || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge > 600 || strings.Contains(c.Value, query.Get("nonce")) {
			t.Errorf("the browser keeps %v", c)
		}
		if problem := b.comeBack(b.choose(at, "ann")); problem != "" || b.whoAmI() != user("ann@example.com", "admin") {
			t.Errorf("%s, %s", problem, b.whoAmI())
		}
		if c := b.cookies["__Host-limen"]; len(b.cookies) != 1 || c == nil || c.SameSite != http.SameSiteStrictMode || !c.HttpOnly || !c.Secure {
			t.Errorf("the browser keeps %v", b.cookies)
		}
		if users := g.admin(t, "GET", "/users", ""); !strings.Contains(users, `"name":"ann@example.com","role":"admin"`) || strings.Count(users, `"via":"oidc"`) != 1 {
			t.Errorf("users: %s", users)
		}
		if got := g.audited(t); got != "ann@example.com session GET /login/oidc/callback 200" {
			t.Errorf("the audit log ends with %s", got)
		}
		r, err := http.NewRequest("DELETE", g.origin+"/api/v1/session", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(b.cookies["__Host-limen"])
		if answer, err := oneStep.Do(r); err != nil || answer.StatusCode != 200 || b.whoAmI() != nobody {
			t.Errorf("after the logout: %v, %s", err, b.whoAmI())
		}
	})

	t.Run("only the browser that began, once", func(t *testing.T) {
		b, other := g.browser(t), g.browser(t)
		back := b.choose(b.begin(), "ann")
		kept := *b.cookies["__Host-limen-login"]
		if problem := other.comeBack(back); problem != "expired" {
			t.Errorf("a browser that began nothing: %s", problem)
		}
		other.begin()
		asked := p.Asked()
		if problem := other.comeBack(back); problem != "expired" || p.Asked() != asked {
			t.Errorf("a browser that began another login: %s", problem)
		}
		b.cookies["__Host-limen-login"].Value = kept.Value[:len(kept.Value)-4] + "AAAA"
		if problem := b.comeBack(back); problem != "expired" {
			t.Errorf("a cookie that was changed: %s", problem)
		}
		b.cookies["__Host-limen-login"] = &kept
		if problem := b.comeBack(back); problem != "" {
			t.Errorf("the browser that began: %s", problem)
		}
		b.cookies = map[string]*http.Cookie{"__Host-limen-login": &kept}
		asked = p.Asked()
		if problem := b.comeBack(back); problem != "expired" || p.Asked() != asked || b.whoAmI() != nobody {
			t.Errorf("the same again: %s, %s", problem, b.whoAmI())
		}
	})

	t.Run("tokens that are not to be believed", func(t *testing.T) {
		for what, claims := range map[string]provider.Claims{
			"nonce":    {"nonce": "of another login"},
			"expiry":   {"exp": time.Now().Add(-time.Minute).Unix()},
			"audience": {"aud": "another client"},
			"issuer":   {"iss": "https://accounts.example.com"},
		} {
			for name, value := range verified("ann@example.com", "ops") {
				claims[name] = value
			}
			p.Set("mallory", claims)
			b := g.browser(t)
			if problem := b.logIn("mallory"); problem != "failed" || b.whoAmI() != nobody {
				t.Errorf("another %s: %s, %s", what, problem, b.whoAmI())
			}
		}
	})

	t.Run("who is not let in", func(t *testing.T) {
		p.Set("uli", provider.Claims{"email": "ann@example.com", "email_verified": false, "groups": []string{"ops"}})
		p.Set("bob", verified("bob@example.com", "staff"))
		p.Set("twin", verified("ann@example.com", "ops"))
		p.Set("root", verified("admin", "ops"))
		for _, c := range []struct{ person, problem, who string }{
			{"uli", "unverified", "sub-uli"}, {"bob", "unknown", "bob@example.com"}, {"twin", "taken", "ann@example.com"}, {"root", "taken", "admin"},
		} {
			b := g.browser(t)
			if problem := b.logIn(c.person); problem != c.problem || b.whoAmI() != nobody {
				t.Errorf("%s: %s, %s, want %s", c.person, problem, b.whoAmI(), c.problem)
			}
			if got := g.audited(t); got != c.who+" oidc GET /login/oidc/callback 403" {
				t.Errorf("%s: the audit log ends with %s", c.person, got)
			}
		}
		last := g.audited(t)
		if problem := g.browser(t).logIn("-"); problem != "denied" || g.audited(t) != last {
			t.Errorf("who would not: %s, %s", problem, g.audited(t))
		}
	})

	t.Run("who was invited", func(t *testing.T) {
		g.admin(t, "POST", "/users", `{"name":"Bob@example.com","role":"viewer","via":"oidc"}`)
		p.Set("other", provider.Claims{"email": "bob@example.com"})
		if problem := g.browser(t).logIn("other"); problem != "unverified" {
			t.Errorf("with the address, unverified: %s", problem)
		}
		b := g.browser(t)
		if problem := b.logIn("bob"); problem != "" || b.whoAmI() != user("Bob@example.com", "viewer") {
			t.Errorf("%s, %s", problem, b.whoAmI())
		}
		p.Set("other", verified("bob@example.com"))
		if problem := g.browser(t).logIn("other"); problem != "unknown" {
			t.Errorf("who has the address after that: %s", problem)
		}
		p.Set("bob", verified("bob@new.example.com"))
		if problem := b.logIn("bob"); problem != "" || b.whoAmI() != user("Bob@example.com", "viewer") {
			t.Errorf("with another address: %s, %s", problem, b.whoAmI())
		}
	})

	t.Run("groups and roles", func(t *testing.T) {
		p.Set("cem", verified("cem@example.com", "research"))
		b := g.browser(t)
		if problem := b.logIn("cem"); problem != "" || b.whoAmI() != user("cem@example.com", "member") {
			t.Errorf("%s, %s", problem, b.whoAmI())
		}
		if users := g.admin(t, "GET", "/users", ""); !strings.Contains(users, `"name":"cem@example.com","role":"member","team":"lab"`) {
			t.Errorf("users: %s", users)
		}
		p.Set("cem", verified("cem@example.com", "ops"))
		if problem := g.browser(t).logIn("cem"); problem != "" || b.whoAmI() != user("cem@example.com", "admin") {
			t.Errorf("in another group: %s, %s", problem, b.whoAmI())
		}
		p.Set("cem", verified("cem@example.com"))
		if problem := g.browser(t).logIn("cem"); problem != "unknown" || b.whoAmI() != nobody {
			t.Errorf("in none: %s, %s", problem, b.whoAmI())
		}
		p.Set("dee", verified("dee@example.com", "research"))
		g.admin(t, "PATCH", "/users/cem@example.com", `{"role":"viewer"}`)
		g.admin(t, "DELETE", "/teams/lab", "")
		if problem := g.browser(t).logIn("dee"); problem != "unavailable" {
			t.Errorf("a team that is not there: %s", problem)
		}
		if problem := b.logIn("cem"); problem != "" || b.whoAmI() != user("cem@example.com", "viewer") {
			t.Errorf("with a role by hand: %s, %s", problem, b.whoAmI())
		}
	})

	t.Run("new keys, and none", func(t *testing.T) {
		p.Rotate()
		b := g.browser(t)
		if problem := b.logIn("ann"); problem != "" || b.whoAmI() != user("ann@example.com", "admin") {
			t.Errorf("%s, %s", problem, b.whoAmI())
		}
		back := g.browser(t)
		at := back.choose(back.begin(), "ann")
		p.SetAway(true)
		if problem := back.comeBack(at); problem != "away" {
			t.Errorf("away before the end: %s", problem)
		}
		if b.whoAmI() != user("ann@example.com", "admin") {
			t.Errorf("a session while the provider is away: %s", b.whoAmI())
		}
		p.SetAway(false)
	})

	t.Run("no passwords", func(t *testing.T) {
		g.admin(t, "POST", "/users", `{"name":"pat","role":"viewer","password":"hold the door"}`)
		login := func(name, password string) int {
			answer, err := http.Post(g.origin+"/api/v1/session", "application/json", strings.NewReader(fmt.Sprintf(`{"user":%q,"password":%q}`, name, password)))
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return answer.StatusCode
		}
		if got := login("pat", "hold the door"); got != 200 {
			t.Errorf("with a password: %d", got)
		}
		if got := login("ann@example.com", ""); got != 401 {
			t.Errorf("single sign-on with no password: %d", got)
		}
		g.configure(t, strings.Replace(g.config, "login: {", "login: { passwords: admin,", 1))
		g.admin(t, "POST", "/config/reload", "")
		if got := g.admin(t, "GET", "/login", ""); got != `{"password":false,"oidc":{"name":"Example"}}` {
			t.Errorf("the ways in are %s", got)
		}
		if pat, admin := login("pat", "hold the door"), login("admin", g.password); pat != 401 || admin != 200 {
			t.Errorf("pat %d, admin %d, want 401, 200", pat, admin)
		}
		b := g.browser(t)
		if problem := b.logIn("ann"); problem != "" {
			t.Errorf("after a reload: %s", problem)
		}
	})

	log := g.stop()
	for _, secret := range []string{provider.Secret, "code=", "eyJ"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s:\n%s", secret, log)
		}
	}
	if !strings.Contains(log, "a login by single sign-on failed") {
		t.Errorf("the log does not tell of logins that failed:\n%s", log)
	}
}

// The address that a browser came by is no address to come back to, unless it
// is the machine's own.
func TestForeignHost(t *testing.T) {
	p := provider.New()
	t.Cleanup(p.Close)
	g := start(t, "issuer: "+p.URL+", client_id: a, client: public")
	defer g.stop()
	for _, path := range []string{"/api/v1/login/oidc", "/api/v1/login/oidc/callback?state=a&code=b"} {
		r, err := http.NewRequest("GET", g.origin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "192.0.2.1" // a name of others is refused for all operations
		answer, err := oneStep.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if to := answer.Header.Get("Location"); to != "/console/?login=address" || p.Asked() != 0 {
			t.Errorf("%s: sent to %s", path, to)
		}
	}
}

// await waits for something that comes soon.
func await(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatal("it does not come")
}

// audited is the newest entry of the audit log.
func (g *gateway) audited(t *testing.T) string {
	t.Helper()
	var log struct {
		Changes []struct {
			Who, Via, Operation string
			Status              int
		}
	}
	if err := json.Unmarshal([]byte(g.admin(t, "GET", "/audit?limit=1", "")), &log); err != nil || len(log.Changes) != 1 {
		t.Fatalf("%+v, %v", log, err)
	}
	c := log.Changes[0]
	return fmt.Sprintf("%s %s %s %d", c.Who, c.Via, c.Operation, c.Status)
}

// configure writes the configuration.
func (g *gateway) configure(t *testing.T, text string) {
	t.Helper()
	g.config = text
	if err := os.WriteFile(g.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
