package admin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/keys"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

type inner struct {
	Cost  *money.Amount `json:"cost"`
	Shade string        `json:"shade"`
}

type described struct {
	inner
	Name   string            `json:"name"`
	Shade  int               `json:"shade"` // not that of inner
	Kind   string            `json:"kind,omitempty" enum:"a b"`
	Kinds  []string          `json:"kinds" enum:"c d"`
	At     time.Time         `json:"at,omitzero"`
	Until  *time.Time        `json:"until,omitempty"`
	Body   json.RawMessage   `json:"body,omitempty"`
	Packed []byte            `json:"packed,omitempty"`
	Dict   map[string]string `json:"dict,omitempty"`
	Budget []budget.Budget   `json:"budgets,omitempty"`
	*late
	Own string `json:"-"`
}

type late struct {
	Left int `json:"left"`
}

const (
	members = `"at":{"type":"string","format":"date-time"},"body":{},"budgets":{"type":"array","items":{"$ref":"#/components/schemas/NewBudget"}},` +
		`"cost":COST,"dict":{"type":"object","additionalProperties":{"type":"string"}},"kind":{"type":"string","enum":["a","b"]},` +
		`"kinds":{"type":"array","items":{"type":"string","enum":["c","d"]}},"left":{"type":"integer"},"name":{"type":"string"},` +
		`"packed":{"type":"string","contentEncoding":"base64"},"shade":{"type":"integer"},"until":{"type":"string","format":"date-time"}`
	amount = `{"$ref":"#/components/schemas/Amount"}`
	orNull = `{"anyOf":[` + amount + `,{"type":"null"}]}`
)

// What a type says of its JSON is in its schema: what embeds hides what is
// embedded, what may be absent is not required, and bodies have no other members.
func TestSchemas(t *testing.T) {
	for name, test := range map[string]struct {
		of   reflect.Type
		at   place
		want string
	}{
		"answer": {reflect.TypeFor[described](), inAnswer, `{"type":"object","properties":{` + strings.Replace(members, "COST", orNull, 1) + `},"required":["cost","kinds","name","shade"]}`},
		"body":   {reflect.TypeFor[described](), inBody, `{"type":"object","properties":{` + strings.Replace(members, "COST", amount, 1) + `},"required":["kinds","name","shade"],"additionalProperties":false}`},
		"change": {reflect.TypeFor[partial[struct {
			Name string    `json:"name"`
			Tags []string  `json:"tags"`
			Role keys.Role `json:"role"`
			Team *string   `json:"team"`
		}]](), inBody, `{"type":"object","properties":{"name":{"type":"string"},"role":{"type":"string","enum":["owner","admin","viewer","member"]},` +
			`"tags":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]},"team":{"anyOf":[{"type":"string"},{"type":"null"}]}},"additionalProperties":false}`},
		"text": {reflect.TypeFor[string](), inAnswer, `{"type":"string"}`},
	} {
		s := newSchemas()
		got, err := json.Marshal(s.resolve(s.of(test.of, test.at)))
		if err != nil || s.err() != nil || string(got) != test.want {
			t.Errorf("%s: %v, %v\n%s\nwant\n%s", name, err, s.err(), got, test.want)
		}
	}
}

type writesJSON struct{}

func (writesJSON) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

// A type that says nothing of its JSON, or something else, is not described.
func TestNoSchema(t *testing.T) {
	type Key struct{}
	for want, value := range map[string]any{
		"writes itself":         writesJSON{},
		"has no schema":         []any{},
		"without a name":        struct{ Name string }{},
		"has the name of admin": Key{},
	} {
		s := newSchemas()
		s.of(reflect.TypeFor[KeyList](), inAnswer)
		s.of(reflect.TypeOf(value), inAnswer)
		if err := s.err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that %q", err, want)
		}
	}
}

// Values that stand in tags are those that there are.
func TestEnums(t *testing.T) {
	doc, err := newServer(t).api.openAPI(nil)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name, member string) []string {
		m := doc.Components.Schemas[name].Properties[member]
		if m.Items != nil {
			m = m.Items
		}
		return m.Enum
	}
	for got, want := range map[[2]string][]string{
		{"NewAdminToken", "scopes"}: keys.ScopeNames,
		{"Token", "scopes"}:         keys.ScopeNames,
		{"Usage", "by"}:             texts(store.Dimensions),
		{"User", "role"}:            texts(keys.Roles),
		{"Budget", "period"}:        {"day", "week", "month", "total"},
		{"Change", "via"}:           texts([]keys.Via{keys.ViaPassword, keys.ViaSession, keys.ViaToken, keys.ViaSocket, keys.ViaDirectory}),
	} {
		if have := of(got[0], got[1]); !slices.Equal(have, want) {
			t.Errorf("%v is of %q, want %q", got, have, want)
		}
	}
}
