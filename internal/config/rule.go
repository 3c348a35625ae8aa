package config

import (
	"errors"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	cel "github.com/limen-gateway/limen/internal/rule"
)

// rule is what a leaf accepts.
type rule struct {
	want    string             // completes "expected …"
	test    func(string) error // nil: any text. The error never repeats the text: it may be a secret
	pattern string             // the same for the JSON Schema, as far as one can say it there
}

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	modelID      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)
	scopeText    = regexp.MustCompile(`^[!#-\[\]-~]{1,100}$`)
	labelText    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	domainName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
	patternText  = regexp.MustCompile(`^[^\s]{1,128}$`)
	tagName      = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,64}$`)
	memberName   = regexp.MustCompile(`^[^\s"]{1,128}$`)
)

// ruleNamed finds the rule that a check or keys tag names.
func ruleNamed(name string) rule {
	switch name {
	case "address":
		return rule{want: "host:port such as 127.0.0.1:8080", test: testAddress}
	case "base url":
		return rule{want: "an http or https URL such as https://host/v1", test: testBaseURL, pattern: "^https?://"}
	case "public url":
		return rule{want: "an http or https URL such as https://host", test: testPublicURL, pattern: "^https?://"}
	case "issuer":
		return rule{want: "the https URL of a provider such as https://accounts.example.com", test: testIssuer, pattern: "^https?://"}
	case "scope":
		return matching("a scope: a word without spaces", scopeText)
	case "url":
		return rule{want: "an http or https URL such as https://host/search", test: func(text string) error { _, err := parseURL(text); return err }, pattern: "^https?://"}
	case "url pattern":
		return rule{want: "the URL of a server such as https://mcp.example.com/*", test: testURLPattern, pattern: "^https?://"}
	case "mail":
		return rule{want: "a mail address such as me@example.com", test: testMail, pattern: "@"}
	case "label":
		return matching("a label: letters, digits, dash and underscore, at most 64", labelText)
	case "origin":
		return rule{want: "* or an origin such as https://host", test: testOrigin, pattern: `^(\*|https?://[^/?#@]+)$`}
	case "header value":
		return rule{want: "text", test: testHeaderValue}
	case "provider":
		return matching("a provider's name: lower-case letters, digits, dot, dash and underscore, at most 63", providerName)
	case "model":
		return matching("a model ID: letters, digits and ._:/@+- without spaces, at most 128", modelID)
	case "header":
		return matching("the name of a header", headerName)
	case "domain":
		return matching("a domain such as llm.example.com", domainName)
	case "pattern":
		return matching("a name, or a pattern with *", patternText)
	case "condition":
		return rule{want: "an expression of CEL such as team == \"research\"", test: testCondition}
	case "tag":
		return matching("the name of a tag: letters, digits and _.:/-, at most 64", tagName)
	case "member":
		return matching("the name of a member", memberName)
	default:
		return rule{want: "text"}
	}
}

func matching(want string, pattern *regexp.Regexp) rule {
	return rule{want: want, pattern: pattern.String(), test: func(text string) error {
		if !pattern.MatchString(text) {
			return errors.New("expected " + want)
		}
		return nil
	}}
}

// ruleOf is the rule for a leaf of this type in this field.
func ruleOf(t reflect.Type, f field) rule {
	switch t {
	case reflect.TypeFor[Duration]():
		return rule{want: "a duration such as 30s, 12h or 30d", pattern: `^(([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+|[0-9]+d)$`}
	case reflect.TypeFor[ByteSize]():
		return rule{want: "a size such as 64MiB", pattern: `^[0-9]+ ?([KMG]i?B|B)?$`}
	case reflect.TypeFor[Percent]():
		return rule{want: "a share such as 10%", pattern: `^([0-9]|[1-9][0-9]|100)%?$`}
	case reflect.TypeFor[Rate]():
		return rule{want: rateHelp, pattern: rateText.String()}
	case reflect.TypeFor[Fee]():
		return rule{want: feeHelp, pattern: feeText.String()}
	case reflect.TypeFor[Factor]():
		return rule{want: factorHelp, pattern: `^([1-9][0-9]{0,2}|1000)%?$`}
	case reflect.TypeFor[Markup]():
		return rule{want: markupHelp, pattern: `^[0-9]{1,4}(\.[0-9]{1,2})?%?$`}
	case reflect.TypeFor[Date]():
		return rule{want: dateHelp, pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.+)?$`}
	case reflect.TypeFor[SecretURL]():
		return ruleNamed("url")
	case reflect.TypeFor[Upstream]():
		return rule{want: "provider/upstream-model", pattern: `^[^/\s]+/\S+$`}
	case reflect.TypeFor[Pattern]():
		return ruleNamed("pattern")
	}
	switch {
	case len(f.enum) > 0:
		return rule{want: "one of " + strings.Join(f.enum, ", ")}
	case t.Kind() == reflect.Bool:
		return rule{want: "true or false"}
	case t.Kind() == reflect.Int:
		return rule{want: "a whole number"}
	}
	return ruleNamed(f.check)
}

// set reads the text of one value into a leaf.
func set(v reflect.Value, f field, text string) error {
	if err := setRaw(v, f, text); err != nil {
		return err
	}
	if v.CanInt() && v.Int() < f.min {
		if f.min == 0 {
			return errors.New("must not be negative")
		}
		return errors.New("must be positive")
	}
	return nil
}

func setRaw(v reflect.Value, f field, text string) error {
	if s, ok := v.Addr().Interface().(scalar); ok {
		return s.parse(text)
	}
	rule := ruleOf(v.Type(), f)
	expected := errors.New("expected " + rule.want)
	switch v.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return expected
		}
		v.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return expected
		}
		v.SetInt(int64(n))
	case reflect.String:
		if len(f.enum) > 0 && !slices.Contains(f.enum, text) {
			return expected
		}
		if rule.test != nil {
			if err := rule.test(text); err != nil {
				return err
			}
		}
		v.SetString(text)
	}
	return nil
}

func testAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strings.ContainsAny(host, "/ \t\n") {
		return errors.New("expected host:port such as 127.0.0.1:8080")
	}
	return nil
}

func testBaseURL(text string) error {
	u, err := parseURL(text)
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.ForceQuery || len(query) > 1 || len(query) == 1 && len(query["api-version"]) != 1 {
		return errors.New("a base URL takes no query other than ?api-version=…")
	}
	return nil
}

func testPublicURL(text string) error {
	u, err := parseURL(text)
	if err != nil {
		return err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return errors.New("the public URL takes no query")
	}
	return nil
}

// testURLPattern accepts a star where it stands for whole labels of a host, or
// for the rest of a path.
func testURLPattern(text string) error {
	u, err := parseURL(text)
	if err != nil {
		return err
	}
	host, path := strings.TrimPrefix(u.Host, "*."), strings.TrimSuffix(u.Path, "*")
	if u.RawQuery != "" || u.ForceQuery || host == "" || strings.Contains(host, "*") || strings.Contains(path, "*") {
		return errors.New("expected a URL with a host, where *. may begin the host and * may end the path")
	}
	return nil
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("expected an http or https URL with a host")
	case u.User != nil:
		return nil, errors.New("a URL here takes no user name or password")
	case strings.Contains(text, "#"):
		return nil, errors.New("a URL here takes no fragment")
	}
	return u, nil
}

func testOrigin(text string) error {
	if text == "*" {
		return nil
	}
	u, err := parseURL(text)
	if err != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery {
		return errors.New("expected * or an origin such as https://host, without a path")
	}
	return nil
}

func testCondition(text string) error {
	_, err := cel.Compile(text)
	return err
}

func testHeaderValue(text string) error {
	if strings.ContainsAny(text, "\n\r") {
		return errors.New("a line break cannot be sent in a header")
	}
	return nil
}
