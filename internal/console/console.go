// Package console serves the web console: static files under /console/ that
// speak to the admin API as any other client does. No page has a script, a
// style or an address that is not among them.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed static
var embedded embed.FS

// Root is where the console is.
const Root = "/console/"

// asset is a file as it is served.
type asset struct {
	kind          string // its content type
	plain, packed []byte
}

// site is everything that is served. The files, but for the page that begins
// with them, are below a folder that is named by their hash: what was fetched
// from there stays good for ever.
type site struct {
	index  asset
	folder string
	assets map[string]asset // by path below the folder
}

// kinds are the content types of the files; others are not served.
var kinds = map[string]string{
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// specifiers are the names by which the libraries import one another. They
// are kept as their authors released them, and served with addresses instead:
// a map of imports would be a script within the page.
var specifiers = strings.NewReplacer(
	`from"preact"`, `from"./preact.mjs"`,
	`from"preact/hooks"`, `from"./hooks.mjs"`,
	`from"@preact/signals-core"`, `from"./signals-core.mjs"`,
)

// load reads the embedded files, once: they cannot be missing.
var load = sync.OnceValue(func() *site {
	s, sum := &site{assets: map[string]asset{}}, sha256.New()
	err := fs.WalkDir(embedded, "static", func(name string, entry fs.DirEntry, err error) error {
		kind := kinds[path.Ext(name)]
		if err != nil || kind == "" {
			return err
		}
		text, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "static/")
		if strings.HasPrefix(name, "lib/") {
			text = []byte(specifiers.Replace(string(text)))
		}
		sum.Write([]byte(name))
		sum.Write(text)
		s.assets[name] = newAsset(kind, text)
		return nil
	})
	page, indexErr := embedded.ReadFile("static/index.html")
	if err != nil || indexErr != nil {
		panic("console: the embedded files cannot be read")
	}
	s.folder = hex.EncodeToString(sum.Sum(nil)[:8])
	var preload []string
	for name := range s.imports("main.js", map[string]bool{}) {
		preload = append(preload, `<link rel="modulepreload" href="{folder}/`+name+`">`)
	}
	slices.Sort(preload)
	page = bytes.Replace(page, []byte("{preload}"), []byte(strings.Join(preload, "\n")), 1)
	s.index = newAsset("text/html; charset=utf-8", bytes.ReplaceAll(page, []byte("{folder}"), []byte(s.folder)))
	return s
})

var importing = regexp.MustCompile(`(?:from |from|import )["'](\.[^"']+)["']`)

// imports adds to seen a module and all that it imports at once. The page
// names them, so that a browser need not find one in another.
func (s *site) imports(name string, seen map[string]bool) map[string]bool {
	seen[name] = true
	for _, m := range importing.FindAllSubmatch(s.assets[name].plain, -1) {
		if next := path.Join(path.Dir(name), string(m[1])); !seen[next] {
			s.imports(next, seen)
		}
	}
	return seen
}

func newAsset(kind string, text []byte) asset {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a good one
	z.Write(text)                                              // a buffer takes all
	z.Close()
	return asset{kind, text, packed.Bytes()}
}

// Handler serves the console to browsers that came by one of the names of the
// gateway. hosts are those besides the loopback's; they may have a port.
func Handler(hosts func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		if !Trusted(r, hosts()) {
			http.Error(w, "Limen does not know itself by this name, so the console is not served here: another site may have been pointed at this address.\n"+
				"If the name is right, set public_url in the configuration.", http.StatusMisdirectedRequest)
			return
		}
		load().serve(w, r)
	})
}

// protect sets what holds of every answer.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
}

// Trusted reports whether the Host of a request is the gateway's own. A name
// that somebody else points at this address is not; with TLS no browser takes
// one, and an IP address is no name.
func Trusted(r *http.Request, hosts []string) bool {
	host := hostname(r.Host)
	if r.TLS != nil || net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	return slices.ContainsFunc(hosts, func(name string) bool { return hostname(name) == host })
}

// hostname is a host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, Root)
	switch {
	case !below:
		http.Redirect(w, r, Root, http.StatusMovedPermanently)
		return
	case name == "":
		s.index.serve(w, r)
		return
	}
	folder, name, _ := strings.Cut(name, "/")
	file, ok := s.assets[name]
	if folder != s.folder || !ok {
		http.Error(w, "The console has no such file. It may have been updated: open "+Root+" again.", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	file.serve(w, r)
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	h, body := w.Header(), a.plain
	h.Set("Content-Type", a.kind)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.packed
	}
	w.Write(body)
}
