package admin

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The console knows bodies and answers by types that are made of the description.
func TestTypesOfConsole(t *testing.T) {
	doc, err := newServer(t).api.openAPI(nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "console", "types.d.ts")
	got := typesOf(doc)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%s is not made of the operations as they are (%v): write it anew with 'go test ./internal/admin -run TestTypesOfConsole -update'", path, err)
	}
}

// typesOf are the types of bodies, of answers and of what can be got, as
// TypeScript has them.
func typesOf(doc *OpenAPI) string {
	var out strings.Builder
	out.WriteString("// What the admin API takes and answers, made of its description. Amounts are texts in answers,\n" +
		"// as api.js reads them.\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		if s.Type == "object" && s.Properties != nil {
			fmt.Fprintf(&out, "\nexport interface %s %s\n", name, typeOf(s, "", false))
			continue
		}
		if name != "Amount" {
			fmt.Fprintf(&out, "\nexport type %s = %s;\n", name, typeOf(s, "", false))
		}
	}
	out.WriteString("\n// What GET answers at a path, with a query or without; any where the path is not known.\n" +
		"export type Answer<Path extends string> = Path extends `${infer Bare}?${string}` ? Told<Bare> : Told<Path>;\n\ntype Told<Path extends string> =\n")
	paths := slices.SortedFunc(maps.Keys(doc.Paths), func(a, b string) int {
		return cmp.Or(strings.Count(a, "{")-strings.Count(b, "{"), strings.Compare(a, b))
	})
	for _, path := range paths {
		done, _ := doc.Paths[path]["get"].Responses["200"].(*apiResponse)
		if done == nil || done.Content["application/json"].Schema == nil {
			continue
		}
		pattern := "'" + path + "'"
		if strings.Contains(path, "{") {
			pattern = "`" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "$${string}") + "`"
		}
		fmt.Fprintf(&out, "  Path extends %s ? %s :\n", pattern, typeOf(done.Content["application/json"].Schema, "  ", false))
	}
	out.WriteString("  any;\n")
	return out.String()
}

// typeOf is the type of a schema; sent says that it is part of a body.
func typeOf(s *schema, indent string, sent bool) string {
	if name, ok := strings.CutPrefix(s.Ref, toSchemas); ok {
		if name != "Amount" {
			return name
		}
		if sent {
			return "number"
		}
		return "string"
	}
	if s.AnyOf != nil {
		var all []string
		for _, one := range s.AnyOf {
			all = append(all, typeOf(one, indent, sent))
		}
		return strings.Join(all, " | ")
	}
	switch s.Type {
	case "string":
		if s.Enum != nil {
			return "'" + strings.Join(s.Enum, "' | '") + "'"
		}
		return "string"
	case "integer", "number":
		return "number"
	case "boolean", "null":
		return s.Type
	case "array":
		if of := typeOf(s.Items, indent, sent); !strings.Contains(of, " ") {
			return of + "[]"
		}
		return "(" + typeOf(s.Items, indent, sent) + ")[]"
	case "object":
		return objectOf(s, indent, sent || s.Additional == false)
	}
	return "any"
}

func objectOf(s *schema, indent string, sent bool) string {
	if of, ok := s.Additional.(*schema); ok {
		return "Record<string, " + typeOf(of, indent, sent) + ">"
	}
	if s.Properties == nil {
		return "Record<string, any>"
	}
	var out strings.Builder
	out.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		mark := "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		fmt.Fprintf(&out, "%s  %s%s: %s;\n", indent, name, mark, typeOf(s.Properties[name], indent+"  ", sent))
	}
	out.WriteString(indent + "}")
	return out.String()
}

// The console reads amounts as texts by the names of their members. No name
// stands for an amount here and for something else there.
func TestNamesOfAmounts(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "console", "static", "api.js"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^const amounts = /"\(([a-z_|]+)\)":`).FindSubmatch(script)
	if found == nil {
		t.Fatal("api.js names no amounts")
	}
	read := strings.Split(string(found[1]), "|")
	doc, err := newServer(t).api.openAPI(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range doc.Components.Schemas {
		if s.Additional == false {
			continue // a body
		}
		for member, of := range s.Properties {
			if isAmount := strings.Contains(typeOf(of, "", true), "number") && strings.Contains(typeOf(of, "", false), "string"); isAmount != slices.Contains(read, member) {
				t.Errorf("%s of %s is an amount: %v; api.js reads it as one: %v", member, name, isAmount, !isAmount)
			}
		}
	}
}
