// Package internal_test holds the rules of the tree as a whole, which no
// single package can keep.
package internal_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/limen-gateway/limen"
	root   = ".."
)

// layers are the packages from the top down. A package imports those of lower
// lines only: not of higher ones, and not its neighbours.
var layers = [][]string{
	{"."},
	{"internal/cli"},
	{"internal/app"},
	{"internal/admin", "internal/gateway", "internal/console"},
	{"internal/probe", "internal/connect", "internal/catalog", "internal/tools"},
	{"internal/keys", "internal/route"},
	{"internal/ledger", "internal/telemetry", "internal/state", "internal/alert", "internal/arrivals", "internal/document"},
	{"internal/budget"},
	{"internal/upstream"},
	{"internal/socket"},
	{"internal/http1", "internal/mcp", "internal/signon"},
	{"internal/provider/echo", "internal/provider/modelsdev"},
	{"internal/provider"},
	{"internal/dialect/openaichat", "internal/dialect/openairesponses", "internal/dialect/anthropic", "internal/dialect/gemini", "internal/dialect/bedrock"},
	{"internal/dialect/openai"},
	{"internal/dialect"},
	{"internal/store", "internal/config"},
	{"internal/seal", "internal/rule", "internal/price", "internal/reconcile"},
	{"internal/llm"},
	{"internal/jsonedit", "internal/sse"},
	{"internal/spelling", "internal/buffer", "internal/lru", "internal/limit", "internal/tokens", "internal/money", "internal/repeat", "internal/diff"},
}

// apart are programs and tests of their own, with all below them. The product
// knows nothing of them.
var apart = []string{"bench", "internal/e2e", "internal/dialect/dialecttest", "internal/provider/genfacts", "internal/store/storetest"}

// heavy are packages that the product does without: templates make the linker
// keep every method, and the standard proxy is not the gateway's.
var heavy = []string{"html/template", "text/template", "net/http/httputil"}

// source is a Go file that is not a test.
type source struct {
	path string // from the root, with slashes
	dir  string
	ast  *ast.File
}

func (s source) product() bool { return !under(s.dir, apart) }

// imports are the paths that the file imports.
func (s source) imports() (paths []string) {
	for _, spec := range s.ast.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

func TestImportsPointDown(t *testing.T) {
	files, _ := sources(t)
	found := map[string]bool{}
	for _, f := range files {
		found[f.dir] = true
		if !f.product() {
			continue
		}
		if layerOf(f.dir) < 0 {
			t.Errorf("%s: package %s has no layer; give it one in the table", f.path, f.dir)
			continue
		}
		for _, path := range f.imports() {
			if fault := misdirected(f.dir, path); fault != "" {
				t.Errorf("%s: %s", f.path, fault)
			}
		}
	}
	for _, layer := range layers {
		for _, dir := range layer {
			if !found[dir] {
				t.Errorf("%s is in the table and nowhere else", dir)
			}
		}
	}
}

// misdirected says what is wrong with an import; "" when it points down, or
// out of the module.
func misdirected(from, path string) string {
	to, own := strings.CutPrefix(path, module+"/")
	if !own {
		return ""
	}
	above, below := layerOf(from), layerOf(to)
	switch {
	case under(to, apart):
		return fmt.Sprintf("%s imports %s: no part of the product does", from, to)
	case below < 0:
		return fmt.Sprintf("%s imports %s: it has no layer; give it one in the table", from, to)
	case below < above:
		return fmt.Sprintf("%s imports %s: %s lies above %s", from, to, to, from)
	case below == above:
		return fmt.Sprintf("%s imports %s: they lie side by side", from, to)
	}
	return ""
}

func TestMisdirected(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"internal/gateway", "net/http", ""},
		{"internal/gateway", module + "/internal/keys", ""},
		{"internal/keys", module + "/internal/gateway", "internal/keys imports internal/gateway: internal/gateway lies above internal/keys"},
		{"internal/keys", module + "/internal/route", "internal/keys imports internal/route: they lie side by side"},
		{"internal/keys", module + "/internal/e2e/upstream", "internal/keys imports internal/e2e/upstream: no part of the product does"},
		{"internal/keys", module + "/internal/new", "internal/keys imports internal/new: it has no layer; give it one in the table"},
	} {
		if got := misdirected(c.from, c.to); got != c.want {
			t.Errorf("misdirected(%q, %q) = %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestProductImportsNothingHeavy(t *testing.T) {
	files, _ := sources(t)
	for _, f := range files {
		for _, path := range f.imports() {
			if f.product() && slices.Contains(heavy, path) {
				t.Errorf("%s imports %s", f.path, path)
			}
		}
	}
}

func TestReadsAreBounded(t *testing.T) {
	files, set := sources(t)
	for _, f := range files {
		for _, call := range unbounded(f.ast) {
			t.Errorf("%s:%d: a read without a bound", f.path, set.Position(call.Pos()).Line)
		}
	}
}

// unbounded finds calls of bufio.NewScanner, whose lines have a bound that
// nobody chose, and of io.ReadAll with a reader that is not limited where it
// stands.
func unbounded(file *ast.File) (calls []*ast.CallExpr) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch name(call.Fun) {
		case "bufio.NewScanner":
			calls = append(calls, call)
		case "io.ReadAll":
			inner, ok := call.Args[0].(*ast.CallExpr)
			if !ok || name(inner.Fun) != "io.LimitReader" && name(inner.Fun) != "http.MaxBytesReader" {
				calls = append(calls, call)
			}
		}
		return true
	})
	return calls
}

// name is the text of package.Function, "" for anything else.
func name(fun ast.Expr) string {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return pkg.Name + "." + selector.Sel.Name
}

func TestUnbounded(t *testing.T) {
	for _, c := range []struct {
		code string
		want int
	}{
		{"io.ReadAll(r)", 1},
		{"io.ReadAll(r.Body)", 1},
		{"io.ReadAll(bufio.NewReader(r))", 1},
		{"io.ReadAll(io.LimitReader(r, 10))", 0},
		{"io.ReadAll(http.MaxBytesReader(w, r, 10))", 0},
		{"bufio.NewScanner(io.LimitReader(r, 10))", 1},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nvar _, _ = "+c.code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(unbounded(file)); got != c.want {
			t.Errorf("%s has %d unbounded reads, want %d", c.code, got, c.want)
		}
	}
}

// homes are places on the machine of whoever wrote a file. They are put
// together here so that this file passes.
var homes = regexp.MustCompile(`(^|[^A-Za-z0-9_.~-])/(` + strings.Join([]string{"work", "root"}, "|") + `)/`)

func TestNoFileNamesItsAuthorsMachine(t *testing.T) {
	walk(t, func(file string) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return // no text
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if at := homes.Find(line); at != nil {
				t.Errorf("%s:%d: the path %s… is on one machine only", file, i+1, bytes.TrimSpace(at))
			}
		}
	})
}

// layerOf is the line of a package in the table, counted from the top; -1 when
// it is not there.
func layerOf(dir string) int {
	return slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, dir) })
}

// under reports whether a folder is one of those listed, or below one.
func under(dir string, list []string) bool {
	return slices.ContainsFunc(list, func(top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") })
}

// sources parses the Go files of the module that are not tests, for every
// system and every build tag.
func sources(t *testing.T) (files []source, set *token.FileSet) {
	t.Helper()
	set = token.NewFileSet()
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || nested(file) {
			return
		}
		parsed, err := parser.ParseFile(set, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		files = append(files, source{path: file, dir: path.Dir(file), ast: parsed})
	})
	if len(files) == 0 {
		t.Fatal("no Go files: where does this test run?")
	}
	return files, set
}

// nested reports whether a file belongs to a module within this one.
func nested(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// walk calls f with every file that is part of the project, from the root and
// with slashes.
func walk(t *testing.T, f func(file string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "node_modules", "dist", "limen-data"}, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			f(file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
