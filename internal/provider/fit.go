package provider

import (
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/jsonedit"
)

// Fitter makes Chat Completions bodies of clients fit for a server by its
// quirks: members that it refuses are left out, members that it calls
// otherwise are renamed. Bodies of other dialects pass.
type Fitter struct {
	quirks Quirks
	named  []string // the members that quirks speak of
}

// NewFitter returns the fitter for quirks, nil when there is nothing to do.
func NewFitter(q Quirks) *Fitter {
	named := slices.Concat(q.Drop, q.DropReasoning)
	for _, p := range q.Rename {
		named = append(named, p.From, p.To)
	}
	if len(named) == 0 {
		return nil
	}
	return &Fitter{quirks: q, named: named}
}

// named is a member that quirks speak of, as a body has it.
type named struct {
	name string
	null bool
}

// Fit returns a body as the server takes it, and a note for each change:
// "drop:seed", "rename:max_tokens". Without changes it returns body itself. It
// refuses a body in which a member that it would act on appears twice or in
// another case. reasons says that the model is known to reason.
func (f *Fitter) Fit(d dialect.Name, body []byte, reasons bool) (fitted []byte, notes []string, err error) {
	if f == nil || d != dialect.OpenAIChat {
		return body, nil, nil
	}
	var whole jsonedit.Object
	if err := jsonedit.Scan(body, noFields, &whole); err != nil {
		return nil, nil, err
	}
	var found []named
	for quoted, value := range jsonedit.Members(body) {
		name, _ := jsonedit.Unquote(quoted)
		if err := f.ambiguous(name, found); err != nil {
			return nil, nil, err
		}
		if slices.Contains(f.named, name) {
			found = append(found, named{name, jsonedit.KindOf(value) == jsonedit.KindNull})
		}
	}
	fates := map[string]string{} // the new name of each member that changes; "" when it goes
	for _, m := range found {
		to, note := f.fate(m, found, reasons)
		if to != m.name {
			fates[m.name] = to
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	if len(fates) == 0 {
		return body, nil, nil
	}
	return rewrite(body, fates), notes, nil
}

var noFields = jsonedit.NewFields()

// ambiguous refuses a second spelling of a member that quirks speak of.
func (f *Fitter) ambiguous(name string, found []named) error {
	if slices.ContainsFunc(found, func(m named) bool { return m.name == name }) {
		return &jsonedit.Error{Reason: jsonedit.Duplicate, Name: name}
	}
	for _, known := range f.named {
		if name != known && strings.EqualFold(name, known) && !slices.Contains(f.named, name) {
			return &jsonedit.Error{Reason: jsonedit.Case, Name: known, Found: name}
		}
	}
	return nil
}

// fate is what becomes of a member: its new name, or "" when it goes, and the
// note that says so.
func (f *Fitter) fate(m named, found []named, reasons bool) (to, note string) {
	if slices.Contains(f.quirks.Drop, m.name) || reasons && slices.Contains(f.quirks.DropReasoning, m.name) {
		return "", "drop:" + m.name
	}
	for _, p := range f.quirks.Rename {
		switch {
		case p.From == m.name && slices.Contains(found, named{p.To, false}):
			return "", "drop:" + m.name
		case p.From == m.name:
			return p.To, "rename:" + m.name
		case p.To == m.name && m.null && slices.ContainsFunc(found, func(o named) bool { return o.name == p.From }):
			return "", "" // as good as absent, and the renamed one takes its place
		}
	}
	return m.name, ""
}

// rewrite copies an object with some members renamed or left out.
func rewrite(body []byte, fates map[string]string) []byte {
	out := append(make([]byte, 0, len(body)), '{')
	for quoted, value := range jsonedit.Members(body) {
		name, _ := jsonedit.Unquote(quoted)
		to, changes := fates[name]
		if changes && to == "" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if changes {
			out = jsonedit.AppendQuote(out, to)
		} else {
			out = append(out, quoted...)
		}
		out = append(out, ':')
		out = append(out, value...)
	}
	return append(out, '}')
}
