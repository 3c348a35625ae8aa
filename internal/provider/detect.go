package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Found is a vendor that can be called from here. It holds no secret, so it
// may be printed and logged.
type Found struct {
	Vendor  Vendor
	BaseURL string // complete: no marks left
	KeyEnv  string // the variable that holds the key; empty: none needed, or the vendor's Means are set
}

func (f Found) String() string {
	text := f.Vendor.Title + " at " + f.BaseURL
	switch {
	case f.KeyEnv != "":
		return text + " with " + f.KeyEnv
	case len(f.Vendor.Means) > 0:
		return text + " with " + f.Vendor.Means[0]
	}
	return text
}

// Detect returns the vendors that the environment gives the means to call, in
// the order of Vendors: those whose key or means are set and whose address is
// complete, and local servers whose address is set. It calls nobody.
//
// A variable that replaces an address but holds no plain http or https URL
// hides the vendor: the key was meant for another place than the vendor's own.
func Detect(getenv func(string) (string, bool)) []Found {
	var found []Found
	for _, v := range vendors {
		if v.ByName {
			continue
		}
		key, _ := firstSet(getenv, v.KeyEnv)
		base, ok := v.locate(getenv, key != "")
		if ok && (key != "" || v.hasMeans(getenv) || v.Local()) {
			found = append(found, Found{Vendor: v.At(base, getenv), BaseURL: base, KeyEnv: key})
		}
	}
	return found
}

// hasMeans reports whether what stands for a key is set.
func (v Vendor) hasMeans(getenv func(string) (string, bool)) bool {
	for _, name := range v.Means {
		if set, _ := firstSet(getenv, []string{name}); set == "" {
			return false
		}
	}
	return len(v.Means) > 0
}

// Address is the base URL of a vendor that is configured by its name: as the
// environment has it, else the usual one.
func (v Vendor) Address(getenv func(string) (string, bool)) (string, bool) {
	if base, ok := v.locate(getenv, false); ok {
		return base, true
	}
	return v.BaseURL, v.Local()
}

// cloudPath is the part of a base URL that names a place in Google Cloud.
var cloudPath = regexp.MustCompile(`/projects/([^/]+)/locations/([^/]+)/?$`)

// At is the vendor at a base URL, with its place filled in: as the end of the
// URL says, ".../projects/P/locations/L", else as the environment does.
func (v Vendor) At(base string, getenv func(string) (string, bool)) Vendor {
	if v.Place == (Place{}) {
		return v
	}
	if named := cloudPath.FindStringSubmatch(base); named != nil {
		v.Place = Place{Project: named[1], Location: named[2]}
		return v
	}
	v.Place.Project, _ = v.fill(v.Place.Project, getenv)
	v.Place.Location, _ = v.fill(v.Place.Location, getenv)
	return v
}

// Root is a base URL of the vendor without the place that it ends in: the
// dialect's own paths name that.
func (v Vendor) Root(base string) string {
	if v.Place == (Place{}) {
		return base
	}
	return cloudPath.ReplaceAllLiteralString(base, "")
}

// fill puts values of the environment in place of the marks of a text. It is
// not ok when a mark stays.
func (v Vendor) fill(text string, getenv func(string) (string, bool)) (filled string, ok bool) {
	ok = true
	for _, f := range v.Fill {
		if !strings.Contains(text, f.Mark) {
			continue
		}
		_, value := firstSet(getenv, f.Env)
		if !isLabel(value) {
			ok = false
			continue
		}
		text = strings.ReplaceAll(text, f.Mark, f.say(value))
	}
	return text, ok
}

// say spells a value as the vendor does.
func (f Fill) say(value string) string {
	for _, w := range f.Words {
		if w.From == value || w.From == "*" {
			return strings.ReplaceAll(w.To, "*", value)
		}
	}
	return value
}

// Incomplete returns an error that says what to set when a mark is left in
// the vendor's place or in its base URL.
func (v Vendor) Incomplete(base string) error {
	var names []string
	left := false
	for _, f := range v.Fill {
		left = left || strings.Contains(base+v.Place.Project+v.Place.Location, f.Mark)
		if !slices.Contains(names, f.Env[0]) {
			names = append(names, f.Env[0])
		}
	}
	if !left {
		return nil
	}
	return errors.New("its address is not complete: set " + strings.Join(names, " and ") + ", or base_url")
}

// locate returns the base URL that the environment asks for.
func (v Vendor) locate(getenv func(string) (string, bool), hasKey bool) (string, bool) {
	for _, b := range v.BaseEnv {
		if _, value := firstSet(getenv, []string{b.Env}); value != "" {
			return serverURL(value, b.Path, v.BaseURL)
		}
	}
	if v.Local() {
		return v.Cloud, v.Cloud != "" && hasKey
	}
	base, complete := v.fill(v.BaseURL, getenv)
	_, placed := v.fill(v.Place.Project+v.Place.Location, getenv)
	if !complete || !placed {
		return "", false
	}
	return base, true
}

// firstSet returns the name and the value of the first variable that is not
// blank, or two empty strings.
func firstSet(getenv func(string) (string, bool), names []string) (name, value string) {
	for _, name := range names {
		if value, ok := getenv(name); ok && strings.TrimSpace(value) != "" {
			return name, strings.TrimSpace(value)
		}
	}
	return "", ""
}

// serverURL makes a base URL of what people write into a variable. A bare host
// gets the scheme and the port of the usual address, and an address that stands
// for every interface, on which a server listens, is turned into one to call.
func serverURL(value, path, usual string) (string, bool) {
	scheme, rest, _ := strings.Cut(usual, "://")
	bare := !strings.Contains(value, "://")
	if bare {
		value = scheme + "://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	port := u.Port()
	if bare && port == "" {
		host, _, _ := strings.Cut(rest, "/")
		_, port, _ = net.SplitHostPort(host)
	}
	return u.Scheme + "://" + callable(u.Hostname(), port) + withPath(u.EscapedPath(), path), true
}

// callable joins host and port. No host, or one such as 0.0.0.0, is this machine.
func callable(host, port string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if port == "" {
		return strings.TrimSuffix(net.JoinHostPort(host, ""), ":")
	}
	return net.JoinHostPort(host, port)
}

// withPath appends path to have, less the part of it that have ends in.
func withPath(have, path string) string {
	have = strings.TrimRight(have, "/")
	for i := len(path); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if strings.HasSuffix(have, path[:i]) {
			return have + path[i:]
		}
	}
	return have + path
}

// isLabel reports whether s can stand in a host name without changing whose it is.
func isLabel(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// A Doer sends requests, as *http.Client does.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

const (
	probeTime = 300 * time.Millisecond // for a server on this very machine
	probeSize = 1 << 20                // a local server's list is far smaller
)

// Probe asks the local servers' usual ports on the loopback interface for a
// model list, all at once, and returns those that gave one, in the order of
// Vendors. It takes at most 300 ms. No key is sent: of a port nobody knows who
// listens. client should not follow redirects.
//
// own is the address that Limen itself listens on, such as ":8080"; its port is
// left alone.
func Probe(ctx context.Context, client Doer, own string) []Found {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()

	answers := make([]Found, len(vendors))
	var wg sync.WaitGroup
	for i, v := range vendors {
		if v.Local() && !SamePort(v.BaseURL, own) {
			wg.Go(func() { answers[i] = ask(ctx, client, v) })
		}
	}
	wg.Wait()
	return slices.DeleteFunc(answers, func(f Found) bool { return f.BaseURL == "" })
}

// SamePort reports whether base and own name the same port. Which interface own
// is bound to does not matter: a server that asks itself is worse than one that
// is overlooked.
func SamePort(base, own string) bool {
	u, err := url.Parse(base)
	_, port, errOwn := net.SplitHostPort(own)
	return err == nil && errOwn == nil && u.Port() == port
}

// ask returns who answers at the usual address of v, or the zero Found.
func ask(ctx context.Context, client Doer, v Vendor) Found {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.BaseURL+"/models", nil)
	if err != nil {
		return Found{}
	}
	resp, err := client.Do(req)
	if err != nil {
		return Found{}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Found{}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, probeSize+1))
	if err != nil || len(body) > probeSize {
		return Found{}
	}
	who, ok := identify(body, v)
	if !ok {
		return Found{}
	}
	return Found{Vendor: who, BaseURL: v.BaseURL}
}

// identify tells by a model list which local server wrote it. A list must be
// exactly of OpenAI's form and name a model, so that any other service on a
// common port is not taken for a vendor. One that signs its models is known by
// that on every port; the others only on their own, usual.
func identify(body []byte, usual Vendor) (Vendor, bool) {
	var list struct {
		Object string `json:"object"`
		Data   []struct {
			ID      string `json:"id"`
			Object  string `json:"object"`
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil || list.Object != "list" || len(list.Data) == 0 {
		return Vendor{}, false
	}
	for _, m := range list.Data {
		if m.ID == "" || m.Object != "model" {
			return Vendor{}, false
		}
	}
	for _, v := range vendors {
		if v.OwnedBy != "" && v.OwnedBy == list.Data[0].OwnedBy {
			return v, true
		}
	}
	return usual, usual.OwnedBy == ""
}
