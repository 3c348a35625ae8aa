package admin

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// Every operation is in the description, and nothing else.
func TestOpenAPI(t *testing.T) {
	s := newServer(t)
	if _, err := s.api.openAPI(nil); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.Local("socket").ServeHTTP(w, httptest.NewRequest("GET", root+"/openapi.json", nil))
	var doc OpenAPI
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || doc.Version != "3.1.0" || doc.Servers[0].URL != "/api/v1" {
		t.Fatalf("%v in %s", err, w.Body)
	}
	count := 0
	for _, methods := range doc.Paths {
		count += len(methods)
	}
	if count != len(s.table) {
		t.Errorf("%d operations are described, want %d", count, len(s.table))
	}
	for i := range s.table {
		op := &s.table[i]
		said, ok := doc.Paths[op.path][strings.ToLower(op.method)]
		if !ok || said.Summary == "" {
			t.Errorf("%s %s is not described: %+v", op.method, op.path, said)
			continue
		}
		if (len(said.Security) == 0) != op.access.unknown || said.Audited != op.change || fmt.Sprint(said.Roles) != fmt.Sprint(op.access.roles) {
			t.Errorf("%s %s is described as %+v", op.method, op.path, said)
		}
		if op.leads {
			if said.Responses["303"] == nil || said.Responses["200"] != nil {
				t.Errorf("%s %s does not say that it sends browsers on: %v", op.method, op.path, said.Responses)
			}
			continue
		}
		if done, _ := said.Responses["200"].(map[string]any); done["content"] == nil || fmt.Sprint(done["content"]) == "map[]" {
			t.Errorf("%s %s does not say what it answers: %v", op.method, op.path, done)
		}
		if (said.Body != nil) != (op.in != nil) {
			t.Errorf("%s %s is described with the body %v", op.method, op.path, said.Body)
		}
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(op.path, -1) {
			if len(said.Parameters) == 0 || said.Parameters[0].Name != name[1] || said.Parameters[0].In != "path" || !said.Parameters[0].Required {
				t.Errorf("%s %s has the parameters %+v", op.method, op.path, said.Parameters)
			}
		}
	}
	if said := doc.Paths["/calls"]["get"]; len(said.Parameters) == 0 || said.Parameters[0].In != "query" {
		t.Errorf("GET /calls has the parameters %+v", said.Parameters)
	}
}
