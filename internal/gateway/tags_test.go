package gateway

import (
	"net/http"
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	both := &Tags{Metadata: []string{"project", "user"}, Headers: []HeaderTag{{"X-Project", "project"}, {"X-Team", "team"}, {"Authorization", "key"}}}
	header := func(fields ...string) http.Header {
		h := http.Header{"Authorization": {"Bearer canary"}}
		for i := 0; i < len(fields); i += 2 {
			h.Add(fields[i], fields[i+1])
		}
		return h
	}
	for name, tt := range map[string]struct {
		header         http.Header
		metadata, want string
	}{
		"none":                           {header(), ``, ""},
		"in order":                       {header("x-team", "b"), `{"user":"u1","project":"p"}`, "project=p\nteam=b\nuser=u1"},
		"of metadata before a header":    {header("x-project", "h"), `{"project":"m"}`, "project=m"},
		"of a header where none is else": {header("x-project", "h"), `{"other":"m"}`, "project=h"},
		"the first of two":               {header("x-team", "a", "x-team", "b"), `{"user":"1","user":"2"}`, "team=a\nuser=1"},
		"no texts":                       {header(), `{"user":1,"project":null}`, ""},
		"no object":                      {header(), `["user"]`, ""},
		"only spaces":                    {header("x-team", "  "), `{"user":"\n\t"}`, ""},
		"control characters":             {header(), `{"user":"a\nteam=b\u0000\u0085c\u2028"}`, "user=a team=b  c"},
		"escapes":                        {header(), `{"us\u0065r":"\u00e9=1"}`, "user=é=1"},
		"no UTF-8":                       {header("x-team", "a\xffb"), ``, "team=ab"},
		"too long":                       {header("x-team", strings.Repeat("é", 150)), ``, "team=" + strings.Repeat("é", 100)},
		"cut within a character":         {header("x-team", "x"+strings.Repeat("é", 150)), ``, "team=x" + strings.Repeat("é", 99)},
		"far too long":                   {header("x-team", strings.Repeat("\xff", 1<<20)), ``, ""},
	} {
		if got := both.of(tt.header, []byte(tt.metadata)); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
