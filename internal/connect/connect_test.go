package connect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// target is what the clients of the tests are to use.
var target = Target{
	Base: "http://127.0.0.1:8080/v1", Key: "limen_abcdefghijkl_0123456789", Model: "lab/small", Context: 32000, Output: 4000,
	Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
}

// TestFiles connects a client and takes it back, once for each page of
// testdata, whose name begins with the client's. The files of a page are:
//
//	before    the file before; without it there is none
//	after     what connect makes of it
//	edited    what somebody then makes of that
//	undone    what the undo makes of it; without it there is to be none again
//	refused   why connect, or else the undo, leaves it as it is
func TestFiles(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".txtar"), func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(filepath.Base(page), ".")
			archive, err := txtar.ParseFile(page)
			if err != nil {
				t.Fatal(err)
			}
			p := &pageOf{t: t, c: Find(name), m: Machine{t.TempDir(), func(string) string { return "" }}, files: map[string]string{}}
			for _, f := range archive.Files {
				p.files[f.Name] = string(f.Data)
			}
			p.play()
		})
	}
}

// pageOf is a page that is played.
type pageOf struct {
	t     *testing.T
	c     *Client
	m     Machine
	files map[string]string
}

func (p *pageOf) play() {
	p.t.Helper()
	path := p.c.at(p.m)
	before, existed := p.files["before"]
	if existed {
		put(p.t, path, before, 0o640)
	}
	change, err := p.c.Connect(p.m, target)
	after, written := p.files["after"]
	if !written {
		p.refused(err)
		return
	}
	if err != nil {
		p.t.Fatal(err)
	}
	apply(p.t, change)
	wantFile(p.t, path, after, mode(existed))
	if existed {
		wantFile(p.t, path+backupSuffix, before, 0o640)
	}
	if s := p.c.State(p.m, nowhere); s.URL != strings.TrimSuffix(target.Base, "/v1") && s.URL != target.Base || s.Model != target.Model {
		p.t.Errorf("state: got %+v, want the URL and the model", s)
	}
	if edited, ok := p.files["edited"]; ok {
		put(p.t, path, edited, 0)
	}
	if change, err = p.c.Undo(p.m); p.files["refused"] != "" {
		p.refused(err)
		return
	}
	if err != nil {
		p.t.Fatal(err)
	}
	apply(p.t, change)
	undone, remains := p.files["undone"]
	if !remains && existed {
		undone, remains = before, true
	}
	if remains {
		wantFile(p.t, path, undone, mode(existed))
	} else {
		wantNone(p.t, path)
	}
	wantNone(p.t, path+backupSuffix)
	wantNone(p.t, path+recordSuffix)
}

func (p *pageOf) refused(err error) {
	p.t.Helper()
	var r *Refusal
	want := strings.TrimSpace(p.files["refused"])
	if !errors.As(err, &r) || want == "" || r.Why.Error() != want {
		p.t.Errorf("refusal: got %v, want %q", err, want)
	}
}

func mode(existed bool) fs.FileMode {
	if existed {
		return 0o640
	}
	return 0o600
}

func nowhere(string) (string, error) { return "", fs.ErrNotExist }

func put(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if mode != 0 {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func apply(t *testing.T, change *Change) {
	t.Helper()
	if err := change.Apply(); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, name, want string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s: got\n%s\nwant\n%s", filepath.Base(name), got, want)
	}
	if info, err := os.Stat(name); err == nil && info.Mode().Perm() != mode {
		t.Errorf("%s: mode %o, want %o", filepath.Base(name), info.Mode().Perm(), mode)
	}
}

func wantNone(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", filepath.Base(name), err)
	}
}

// TestAgain connects a client that is connected.
func TestAgain(t *testing.T) {
	t.Parallel()
	const (
		before = "model = \"gpt-5\"\nmodel_provider = \"openai\"\n"
		table  = "\n[model_providers.limen]\nname = \"Limen\"\nbase_url = \"http://127.0.0.1:8080/v1\"\nenv_key = \"LIMEN_KEY\"\nwire_api = \"responses\"\n"
		small  = "model = \"lab/small\"\nmodel_provider = \"limen\"\nmodel_context_window = 32000\n" + table
		big    = "model = \"lab/big\"\nmodel_provider = \"limen\"\n" + table // whose context is not known
	)
	for _, c := range []struct{ name, edited, after, undone string }{
		{"another model", "", big, before},
		{"something else was changed", "sandbox_mode = \"x\"\n" + small, "sandbox_mode = \"x\"\n" + big, "sandbox_mode = \"x\"\n" + before},
		{"the client chose a model", strings.Replace(small, "lab/small", "lab/other", 1), big, before},
		{
			"the client was turned away", "model = \"gpt-6\"\nmodel_provider = \"azure\"\n" + table,
			big, "model = \"gpt-6\"\nmodel_provider = \"azure\"\n",
		},
		{"somebody built on it", small + "stream_max_retries = 1\n", big + "stream_max_retries = 1\n", ""},
		{"all was taken out by hand", "model = \"gpt-6\"\n", big, "model = \"gpt-6\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, client := Machine{t.TempDir(), func(string) string { return "" }}, Find("codex")
			path := client.at(m)
			put(t, path, before, 0o640)
			connectTo(t, client, m, target)
			wantFile(t, path, small, 0o640)
			if c.edited != "" {
				put(t, path, c.edited, 0)
			}
			other := target
			other.Model, other.Context, other.Output = "lab/big", 0, 0
			connectTo(t, client, m, other)
			wantFile(t, path, c.after, 0o640)
			change, err := client.Undo(m)
			if c.undone == "" {
				if err == nil {
					t.Errorf("undo: got\n%s\nwant a refusal", change.After)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			apply(t, change)
			wantFile(t, path, c.undone, 0o640)
		})
	}
}

func connectTo(t *testing.T, c *Client, m Machine, to Target) *Change {
	t.Helper()
	change, err := c.Connect(m, to)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, change)
	return change
}

// TestSame connects twice to the same.
func TestSame(t *testing.T) {
	t.Parallel()
	for i := range Clients {
		c := &Clients[i]
		m := Machine{t.TempDir(), func(string) string { return "" }}
		connectTo(t, c, m, target)
		later := target
		if change, err := c.Connect(m, later); err != nil || !change.Same() {
			t.Errorf("%s: got %v and\n%s\nwant no change", c.Name, err, change.Diff(false))
		}
	}
}

// TestLines keeps the ends of lines that an editor on Windows makes.
func TestLines(t *testing.T) {
	t.Parallel()
	m, c := Machine{t.TempDir(), func(string) string { return "" }}, Find("claude")
	path := c.at(m)
	const before = "{\r\n  \"model\": \"opus\"\r\n}\r\n"
	put(t, path, before, 0o600)
	change := connectTo(t, c, m, target)
	if strings.Contains(change.Diff(false), "\r") || !strings.HasPrefix(change.Diff(false), "--- ") {
		t.Errorf("diff: got\n%q", change.Diff(false))
	}
	got, err := os.ReadFile(path)
	if err != nil || strings.Count(string(got), "\n") != 11 || strings.Count(string(got), "\r\n") != 11 {
		t.Errorf("got %q, %v, want 11 lines that end in CR LF", got, err)
	}
	if change, err = c.Undo(m); err != nil {
		t.Fatal(err)
	}
	apply(t, change)
	wantFile(t, path, before, 0o600)
}

// TestLink writes to where a link leads, and leaves the link.
func TestLink(t *testing.T) {
	t.Parallel()
	m, c := Machine{t.TempDir(), func(string) string { return "" }}, Find("codex")
	kept := filepath.Join(m.Home, "dotfiles", "codex.toml")
	put(t, kept, "model = \"gpt-5\"\n", 0o600)
	link := c.at(m)
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kept, link); err != nil {
		t.Skip(err)
	}
	connectTo(t, c, m, target)
	if to, err := os.Readlink(link); err != nil || to != kept {
		t.Errorf("link: got %s, %v", to, err)
	}
	if got, err := os.ReadFile(kept); err != nil || !strings.Contains(string(got), "lab/small") {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestPlaces finds a client's file by its variables, and by what is there.
func TestPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	other := filepath.Join(home, "other")
	put(t, filepath.Join(other, "opencode", "opencode.jsonc"), "{}", 0o600)
	for _, c := range []struct{ client, variable, want string }{
		{"codex", "", ".codex/config.toml"},
		{"codex", "CODEX_HOME", "other/config.toml"},
		{"claude", "CLAUDE_CONFIG_DIR", "other/settings.json"},
		{"opencode", "", ".config/opencode/opencode.json"},
		{"opencode", "XDG_CONFIG_HOME", "other/opencode/opencode.jsonc"},
		{"cline", "CLINE_DIR", "other/data/settings/providers.json"},
		{"cline", "CLINE_DATA_DIR", "other/settings/providers.json"},
		{"aider", "", ".aider.conf.yml"},
	} {
		m := Machine{home, func(name string) string {
			if name == c.variable {
				return other
			}
			return ""
		}}
		if got := Find(c.client).at(m); got != filepath.Join(home, filepath.FromSlash(c.want)) {
			t.Errorf("%s with %s: got %s, want %s", c.client, c.variable, got, c.want)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	unknown := target
	unknown.Context = 0
	for _, c := range []struct {
		client, before string
		to             Target
		want           string
	}{
		{"codex", "profile = \"x\"\n", target, "profile is set in this file too, and may go before what is written here."},
		{"codex", "model = \"x\"\n", target, ""},
		{"claude", "{\"env\": {\"ANTHROPIC_API_KEY\": \"x\"}}", target, "env.ANTHROPIC_API_KEY is set in this file too, and may go before what is written here."},
		{"zed", "{}", unknown, "The context of lab/small is not known; 128000 tokens are assumed."},
		{"aider", "dark-mode: true\n", target, "The key is in the file, which others on this machine may read: chmod 600 FILE"},
	} {
		m, client := Machine{t.TempDir(), func(string) string { return "" }}, Find(c.client)
		path := client.at(m)
		mode := fs.FileMode(0o600)
		if strings.Contains(c.want, "chmod") {
			mode = 0o644
		}
		put(t, path, c.before, mode)
		change, err := client.Connect(m, c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(strings.Join(change.Notes, "\n"), path, "FILE"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.client, got, c.want)
		}
	}
}

// TestRefusals are of what stands around a file.
func TestRefusals(t *testing.T) {
	t.Parallel()
	m := Machine{t.TempDir(), func(string) string { return "" }}
	want := func(err error, want string) {
		t.Helper()
		var r *Refusal
		if !errors.As(err, &r) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	c := Find("continue")
	hidden := filepath.Join(filepath.Dir(c.at(m)), "config.json")
	put(t, hidden, "{}", 0o600)
	_, err := c.Connect(m, target)
	want(err, "Continue leaves "+hidden+" unread once it is there.\nPut this into it by hand:\n\nmodels:\n  - name: lab/small (Limen)\n")

	c = Find("codex")
	put(t, c.at(m), "model = \"a\"\n", 0o600)
	change, err := c.Connect(m, target)
	if err != nil {
		t.Fatal(err)
	}
	put(t, c.at(m), "model = \"b\"\n", 0)
	want(change.Apply(), "it was changed in this moment")
	wantFile(t, c.at(m), "model = \"b\"\n", 0o600)
	wantNone(t, c.at(m)+backupSuffix)

	_, err = c.Undo(m)
	want(err, "nothing of 'limen connect' is recorded for it")

	put(t, c.at(m), strings.Repeat("#\n", maxFile), 0)
	_, err = c.Connect(m, target)
	want(err, "has more than 4 MiB")
}

func TestDiff(t *testing.T) {
	t.Parallel()
	const many = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"
	for _, c := range []struct {
		name   string
		change Change
		want   string
	}{
		{"a new file", Change{After: "a\nb\n", Made: true}, "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"a file that goes", Change{Before: "a\n", Removes: true}, "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n"},
		{
			"two hunks", Change{Before: many, After: strings.Replace(strings.Replace(many, "1\n2\n", "1\n", 1), "12\n", "12\n13\n", 1)},
			"--- f\n+++ f\n@@ -1,5 +1,4 @@\n 1\n-2\n 3\n 4\n 5\n@@ -10,3 +9,4 @@\n 10\n 11\n 12\n+13\n",
		},
		{"keys", Change{Before: "k: sk-proj-0123456789abcdef\n", After: "k: limen_abcdefghijkl_0123456789 # x\n"}, "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-k: sk-proj…\n+k: limen_abcd… # x\n"},
		{"nothing", Change{Before: "a\n", After: "a\n"}, "--- f\n+++ f\n"},
	} {
		c.change.Path = "f"
		if got := c.change.Diff(false); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	coloured := (&Change{Path: "f", Before: "a\n", After: "b\n"}).Diff(true)
	if want := "\x1b[1m--- f\x1b[0m\n\x1b[1m+++ f\x1b[0m\n\x1b[36m@@ -1,1 +1,1 @@\x1b[0m\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n"; coloured != want {
		t.Errorf("colours: got %q, want %q", coloured, want)
	}
}

// FuzzFiles connects any file and takes it back: value by value, nothing of
// what was there is lost.
func FuzzFiles(f *testing.F) {
	pages, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, page := range pages {
		name, _, _ := strings.Cut(filepath.Base(page), ".")
		archive, err := txtar.ParseFile(page)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			for i := range Clients {
				if Clients[i].Name == name {
					f.Add(i, string(file.Data))
				}
			}
		}
	}
	f.Add(0, "?") // a name that is nowhere
	f.Fuzz(func(t *testing.T, client int, text string) {
		c := &Clients[uint(client)%uint(len(Clients))]
		list, _ := c.assignments(target)
		before := c.begin(text)
		after, err := c.write(before, list)
		if err != nil {
			return // and the file stays as it is
		}
		read := func(text string) document {
			d, err := c.Format.read(text)
			if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			return d
		}
		r := &record{}
		for _, a := range list {
			r.Written = append(r.Written, written{a.path, sum(read(after).root().find(a.path).text)})
		}
		undone, _, err := c.takeOut(&file{text: after, before: before, record: r}, false)
		if err != nil {
			return // what was there before is built on what was written
		}
		got, want := others(undone, read(c.begin(undone)), nil), others(before, read(before), nil)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s\nafter\n%s", undone, before, after)
		}
	})
}
