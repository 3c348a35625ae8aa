package console

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// get asks the console as a browser does that came by host.
func get(t *testing.T, host, url string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler(func() []string { return []string{"gate.example.com:8443", "10.1.2.3:8080"} }).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHeaders(t *testing.T) {
	want := map[string]string{
		"Content-Security-Policy":      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	}
	folder := Root + load().folder
	for url, status := range map[string]int{
		Root: 200, "/console": 301, folder + "/main.js": 200, folder + "/pages/home.js": 200, folder + "/lib/uPlot.min.css": 200, folder + "/icon.svg": 200,
		folder + "/none.js": 404, folder + "/index.html": 404, folder + "/lib/SHA256SUMS": 404, Root + "0123456789abcdef/main.js": 404,
		Root + "main.js": 404, Root + "../console.go": 404,
	} {
		for _, host := range []string{"127.0.0.1:8080", "evil.example"} {
			answer := get(t, host, url)
			wanted := status
			if host == "evil.example" {
				wanted = http.StatusMisdirectedRequest
			}
			if answer.StatusCode != wanted {
				t.Errorf("%s at %s: status %d, want %d", url, host, answer.StatusCode, wanted)
			}
			for name, value := range want {
				if got := answer.Header.Get(name); got != value {
					t.Errorf("%s at %s: %s is %q", url, host, name, got)
				}
			}
			cached := wanted == 200 && url != Root
			if got := answer.Header.Get("Cache-Control"); strings.Contains(got, "immutable") != cached || !cached && got != "no-cache" {
				t.Errorf("%s at %s: Cache-Control is %q", url, host, got)
			}
		}
	}
}

// A name of somebody else that leads here is not served.
func TestHosts(t *testing.T) {
	for host, want := range map[string]int{
		"127.0.0.1:8080": 200, "127.0.0.1": 200, "[::1]:8080": 200, "[::1]": 200, "localhost:8080": 200, "LOCALHOST": 200, "limen.localhost": 200,
		"gate.example.com": 200, "GATE.example.com.:443": 200, "192.168.1.7:8080": 200,
		"evil.example": 421, "gate.example.com.evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:8080": 421, "": 421,
	} {
		if got := get(t, host, Root).StatusCode; got != want {
			t.Errorf("%q: status %d, want %d", host, got, want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, Root, nil)
	r.Host, r.TLS = "named.by.certificate", &tls.ConnectionState{}
	w := httptest.NewRecorder()
	Handler(func() []string { return nil }).ServeHTTP(w, r)
	if w.Code != 200 {
		t.Errorf("with TLS: status %d", w.Code)
	}
}

func TestGzip(t *testing.T) {
	for name, file := range load().assets {
		url := Root + load().folder + "/" + name
		plain := get(t, "localhost", url)
		if plain.Header.Get("Content-Encoding") != "" || body(t, plain.Body) != string(file.plain) {
			t.Errorf("%s: not as it is", name)
		}
		packed := get(t, "localhost", url, "Accept-Encoding", "br, gzip")
		if packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: not packed: %v", name, packed.Header)
			continue
		}
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if body(t, z) != string(file.plain) {
			t.Errorf("%s: packed, it is something else", name)
		}
	}
}

// What others wrote is as they released it, and all of it is listed.
func TestLibraries(t *testing.T) {
	sums, err := embedded.ReadFile("static/lib/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"SHA256SUMS": true, "SOURCES": true}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = true
		text, err := embedded.ReadFile("static/lib/" + name)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != want {
			t.Errorf("%s is not what was released", name)
		}
	}
	files, err := fs.ReadDir(embedded, "static/lib")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if ours := strings.HasSuffix(file.Name(), ".d.mts"); !ours && !listed[file.Name()] {
			t.Errorf("%s has no sum", file.Name())
		}
	}
	for name, file := range load().assets {
		if m := bareImport.FindString(string(file.plain)); m != "" && strings.HasPrefix(name, "lib/") {
			t.Errorf("%s imports by a name: %s", name, m)
		}
	}
}

var (
	bareImport = regexp.MustCompile(`(?:from|import)\s*["'][^./"'][^"']*["']`)
	styled     = regexp.MustCompile(`[^.\w]sheet\('([^']+)'\)`)
	forbidden  = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function|javascript:|https?://[^$'"` + "`" + `]*\.(?:js|css|woff)|\sstyle=|\son[a-z]+="`)
	inline     = regexp.MustCompile(`<style|<script(?:>|\s[^>]*[^"]>)|<script[^>]*>[^<]`)
)

// Our own files make no markup of data, and need nothing that the policy
// forbids.
func TestOwnFiles(t *testing.T) {
	err := fs.WalkDir(embedded, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "static/lib/") {
			return err
		}
		text, err := embedded.ReadFile(name)
		lines, n := bufio.NewScanner(strings.NewReader(string(text))), 0
		for lines.Scan() {
			n++
			if m := forbidden.FindString(lines.Text()); m != "" {
				t.Errorf("%s:%d: %q", name, n, m)
			}
			if m := inline.FindString(lines.Text()); m != "" && path.Ext(name) == ".html" {
				t.Errorf("%s:%d: %q stands within the page", name, n, m)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// maxPage bounds what a browser fetches for a page, as it is served.
const maxPage = 150_000

func TestPagesAreSmall(t *testing.T) {
	s := load()
	for name := range s.assets {
		if !strings.HasPrefix(name, "pages/") {
			continue
		}
		seen := map[string]bool{"style.css": true, "theme.js": true, "icon.svg": true}
		s.follow(t, "main.js", seen)
		s.follow(t, name, seen)
		if name == "pages/usage.js" {
			seen["lib/uPlot.iife.min.js"] = true
		}
		size, plain := len(s.index.packed), len(s.index.plain)
		for file := range seen {
			size, plain = size+len(s.assets[file].packed), plain+len(s.assets[file].plain)
		}
		t.Logf("%-20s %6d bytes, %6d packed", name, plain, size)
		if plain > maxPage {
			t.Errorf("%s: %d bytes, more than %d", name, plain, maxPage)
		}
	}
}

// follow notes a file, all that it imports, and its styles.
func (s *site) follow(t *testing.T, name string, seen map[string]bool) {
	if seen[name] {
		return
	}
	file, ok := s.assets[name]
	if !ok {
		t.Errorf("%s is imported, and there is none", name)
	}
	seen[name] = true
	for _, m := range importing.FindAllSubmatch(file.plain, -1) {
		s.follow(t, path.Join(path.Dir(name), string(m[1])), seen)
	}
	for _, m := range styled.FindAllSubmatch(file.plain, -1) {
		s.follow(t, string(m[1]), seen)
	}
}

// The page names all modules that it begins with, each of which there is.
func TestPreload(t *testing.T) {
	s := load()
	page := string(s.index.plain)
	for _, name := range []string{"main.js", "html.js", "ui.js", "lib/preact.mjs", "lib/signals-core.mjs"} {
		if !strings.Contains(page, `<link rel="modulepreload" href="`+s.folder+"/"+name+`">`) {
			t.Errorf("%s is not preloaded: %s", name, page)
		}
	}
	if strings.Contains(page, "pages/home.js") || strings.ContainsAny(page, "{}") {
		t.Errorf("the page has what it should not: %s", page)
	}
}
