package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/limen-gateway/limen/internal/config"
	"github.com/limen-gateway/limen/internal/diff"
	"github.com/limen-gateway/limen/internal/document"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// Document is the configuration as it is written.
type Document struct {
	Source  string `json:"source" enum:"file store none"`
	Path    string `json:"path,omitempty"`
	Version int64  `json:"version,omitempty"`
	Text    string `json:"text"`
	// Document is the text as JSON, its references as they are written; absent
	// where the text is no YAML.
	Document json.RawMessage `json:"document,omitempty"`
	Drift    *Drift          `json:"drift,omitempty"`
}

// Drift is how a file differs from what is in force.
type Drift struct {
	Problem string `json:"problem,omitempty"`
	Diff    string `json:"diff,omitempty"`
}

// Where the configuration is.
const (
	sourceFile  = "file"
	sourceStore = "store"
	sourceNone  = "none"
)

func (a *API) showDocument(r *request) (*Document, error) {
	if a.ConfigFile != "" {
		return a.fileDocument(), nil
	}
	text, version, err := a.stored(r)
	if err != nil {
		return nil, err
	}
	out := &Document{Source: sourceStore, Version: version, Text: text}
	if version == 0 {
		out.Source = sourceNone
	}
	if d, err := config.ReadDocument(sourceOf(text)); err == nil {
		out.Document = d.JSON()
	}
	return out, nil
}

func sourceOf(text string) config.Source {
	return config.Source{Name: document.Name, Data: []byte(text)}
}

// stored is the newest version of the stored document. Where there is none, it
// is a text that says what is in force.
func (a *API) stored(r *request) (text string, version int64, err error) {
	v, err := a.Documents.Current(r.Context())
	if err != nil || v.Version > 0 {
		return v.Text, v.Version, err
	}
	text, err = a.withFound("")
	return text, 0, err
}

func (a *API) withFound(text string) (string, error) {
	if a.Found == nil {
		return text, nil
	}
	return document.WithFound(text, a.Found())
}

// fileDocument is the document of the file, and how it stands with it.
func (a *API) fileDocument() *Document {
	out := &Document{Source: sourceFile, Path: a.ConfigFile}
	src, err := config.ReadFile(a.ConfigFile, config.Options{})
	if err != nil {
		out.Drift = &Drift{Problem: err.Error()}
		return out
	}
	d, err := config.ReadDocument(src)
	out.Text = shown(src)
	if err == nil {
		out.Document = d.JSON()
	}
	if a.InForce == nil {
		return out
	}
	now, refused := a.InForce()
	if refused == nil && !bytes.Equal(now.Data, src.Data) { // nobody has looked yet
		_, refused = config.Parse(src, a.Documents.Options(false, nil))
	}
	if refused == nil && bytes.Equal(now.Data, src.Data) {
		return out
	}
	out.Drift = &Drift{Diff: unified("in force", a.ConfigFile, shown(now), out.Text)}
	switch {
	case refused != nil:
		out.Drift.Problem = refused.Error()
	case out.Drift.Diff == "":
		out.Drift.Problem = "The file differs from what is in force, in what is not shown."
	}
	return out
}

// shown is the text of a file without what may be secret.
func shown(src config.Source) string {
	d, err := config.ReadDocument(src)
	if err != nil {
		return config.Outline(src)
	}
	return d.Shown()
}

func unified(from, to, before, after string) string {
	if before == after {
		return ""
	}
	return diff.Unified(from, to, before, after, nil)
}

// Version is a version of the stored configuration.
type Version struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Note    string    `json:"note,omitempty"`
	Current bool      `json:"current"`
}

// Versions is a page of them.
type Versions struct {
	Versions []Version `json:"versions"`
	Next     int64     `json:"next,omitempty"`
}

func newVersion(v *store.ConfigVersion, newest int64) Version {
	return Version{v.Version, fromMs(v.At), v.By, v.Note, v.Version == newest}
}

// VersionText is a version with its text.
type VersionText struct {
	Version
	Text string `json:"text"`
	Diff string `json:"diff"` // to the version before
}

func (a *API) listVersions(r *request) (*Versions, error) {
	limit, err := limitOf(r, store.ConfigHistory)
	if err != nil {
		return nil, err
	}
	before := int64(0)
	if text := r.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return nil, llm.InvalidParam("invalid_value", "before", "before is the number of a version.")
		}
	}
	now, err := a.Documents.Current(r.Context())
	if err != nil {
		return nil, err
	}
	rows, err := a.Documents.Versions(r.Context(), before, limit)
	if err != nil {
		return nil, err
	}
	out := &Versions{Versions: []Version{}}
	for i := range rows {
		out.Versions = append(out.Versions, newVersion(&rows[i], now.Version))
	}
	if len(rows) == limit {
		out.Next = rows[limit-1].Version
	}
	return out, nil
}

func (a *API) showVersion(r *request) (*VersionText, error) {
	number, err := strconv.ParseInt(r.PathValue("version"), 10, 64)
	if err != nil {
		return nil, llm.Errorf(llm.NotFound, "There is no version %q of the configuration.", r.PathValue("version"))
	}
	now, err := a.Documents.Current(r.Context())
	if err != nil {
		return nil, err
	}
	v, err := a.Documents.Version(r.Context(), number)
	if err != nil {
		return nil, err
	}
	former := &store.ConfigVersion{}
	if number > 1 {
		if former, err = a.Documents.Version(r.Context(), number-1); err != nil && llm.AsError(err).Kind != llm.NotFound {
			return nil, err
		}
		if former == nil { // it is no longer kept
			former = &store.ConfigVersion{Version: number - 1}
		}
	}
	return &VersionText{newVersion(v, now.Version), v.Text, unified(versionName(former.Version), versionName(number), former.Text, v.Text)}, nil
}

func versionName(version int64) string { return "version " + strconv.FormatInt(version, 10) }

// Checked is what was found out about a document.
type Checked struct {
	OK       bool             `json:"ok"`
	Problems []config.Problem `json:"problems"`
	Diff     string           `json:"diff"` // to what is in force
}

// Check is a configuration that somebody wants to know of whether it is good.
type Check struct {
	Text *string `json:"text"`
}

func (a *API) checkDocument(r *request, in *Check) (*Checked, error) {
	if in.Text == nil {
		return nil, noText()
	}
	out := &Checked{Problems: []config.Problem{}}
	_, err := a.parse(*in.Text, nil)
	out.OK = err == nil
	if bad := (*config.Errors)(nil); errors.As(err, &bad) {
		out.Problems = bad.Problems
	} else if err != nil {
		out.Problems = append(out.Problems, config.Problem{File: document.Name, Line: 1, Column: 1, Message: err.Error()})
	}
	if a.ConfigFile != "" {
		before := ""
		if a.InForce != nil {
			src, _ := a.InForce()
			before = shown(src)
		}
		out.Diff = unified("in force", "checked", before, shown(sourceOf(*in.Text)))
		return out, nil
	}
	before, _, err := a.stored(r)
	if err != nil {
		return nil, err
	}
	out.Diff = unified("in force", "checked", before, *in.Text)
	return out, nil
}

func noText() error {
	return llm.InvalidParam("missing_required_parameter", "text", "text is the configuration.")
}

// parse reads a text as the document that would count, and finds out whether it
// could.
func (a *API) parse(text string, coming map[string]string) (*config.Config, error) {
	opt := a.Documents.Options(a.ConfigFile == "", coming)
	cfg, err := config.Parse(sourceOf(text), opt)
	if err == nil && a.Try != nil {
		err = a.Try(cfg)
	}
	return cfg, err
}

// Written is the version that a change made.
type Written struct {
	Version int64 `json:"version"`
}

// ours refuses changes where a file has the configuration.
func (a *API) ours() error {
	if a.ConfigFile == "" {
		return nil
	}
	e := llm.Errorf(llm.Conflict, "The configuration is the file %s: change that. Without the file, it is kept in the store and can be changed here.", a.ConfigFile)
	e.Code = "configuration_is_a_file"
	return e
}

// put makes a text the next version, and has it count.
func (a *API) put(r *request, c *document.Change) (*Written, error) {
	now, err := a.Documents.Current(r.Context())
	switch {
	case err != nil:
		return nil, err
	case c.Base != now.Version:
		return nil, document.Conflict(now.Version)
	}
	if _, err := a.parse(c.Text, c.Secrets); err != nil {
		return nil, document.Bad(err)
	}
	c.By, c.Note = clean(r.who.Name), clean(c.Note)
	version, err := a.Documents.Add(r.Context(), c)
	if err != nil {
		return nil, err
	}
	return &Written{version}, a.reapply()
}

// reapply has what was changed count at once, where a gateway runs.
func (a *API) reapply() error {
	if a.Reload == nil {
		return nil
	}
	if err := a.Reload(); err != nil {
		return document.Bad(err)
	}
	return nil
}

// NewVersion is a version to be.
type NewVersion struct {
	Text *string `json:"text"`
	Base int64   `json:"base"` // the newest, which it stands on; 0 where there is none
	Note string  `json:"note,omitempty"`
}

func (a *API) putDocument(r *request, in *NewVersion) (*Written, error) {
	if err := a.ours(); err != nil {
		return nil, err
	}
	if in.Text == nil {
		return nil, noText()
	}
	return a.put(r, &document.Change{Text: *in.Text, Base: in.Base, Note: in.Note})
}

// Rollback makes a former version the next.
type Rollback struct {
	Version int64 `json:"version"`
	Base    int64 `json:"base"`
}

func (a *API) rollback(r *request, in *Rollback) (*Written, error) {
	if err := a.ours(); err != nil {
		return nil, err
	}
	v, err := a.Documents.Version(r.Context(), in.Version)
	if err != nil {
		return nil, err
	}
	return a.put(r, &document.Change{Text: v.Text, Base: in.Base, Note: "back to version " + strconv.FormatInt(in.Version, 10)})
}

// Secret is what a configuration refers to by name. Its value is in no answer.
type Secret struct {
	Name    string    `json:"name"`
	Updated time.Time `json:"updated"`
	Used    bool      `json:"used"`
}

// SecretList is the answer of GET /api/v1/config/secrets.
type SecretList struct {
	Secrets []Secret `json:"secrets"`
}

func (a *API) listSecrets(r *request) (*SecretList, error) {
	all, err := a.Documents.Secrets(r.Context())
	if err != nil {
		return nil, err
	}
	text, _, err := a.document(r)
	if err != nil {
		return nil, err
	}
	out, used := &SecretList{[]Secret{}}, secretsIn(text)
	for _, s := range all {
		out.Secrets = append(out.Secrets, Secret{s.Name, s.Updated, slices.Contains(used, s.Name)})
	}
	return out, nil
}

// document is the text that counts, or would, and the newest stored version.
func (a *API) document(r *request) (text string, version int64, err error) {
	v, err := a.Documents.Current(r.Context())
	if err != nil || a.ConfigFile == "" {
		return v.Text, v.Version, err
	}
	src, err := config.ReadFile(a.ConfigFile, config.Options{})
	return string(src.Data), v.Version, err
}

func secretsIn(text string) []string {
	d, err := config.ReadDocument(sourceOf(text))
	if err != nil {
		return nil
	}
	return d.Secrets()
}

// NewSecret is the value of a secret.
type NewSecret struct {
	Value string `json:"value"`
}

func (a *API) setSecret(r *request, in *NewSecret) (*Secret, error) {
	name := r.PathValue("name")
	text, _, err := a.document(r)
	if err != nil {
		return nil, err
	}
	used := slices.Contains(secretsIn(text), name)
	if used { // what cannot be used is not taken
		if _, err := a.parse(text, map[string]string{name: in.Value}); err != nil && a.good(text) {
			return nil, document.Bad(err)
		}
	}
	if err := a.Documents.SetSecret(r.Context(), name, in.Value); err != nil {
		return nil, err
	}
	if used && a.Reload != nil {
		if err := a.Reload(); err != nil {
			a.Log.Warn("a secret was set, and the configuration that it is for is not good", "secret", name)
		}
	}
	return &Secret{name, time.Now().UTC(), used}, nil
}

// good reports whether a text is a good document as it stands.
func (a *API) good(text string) bool {
	_, err := a.parse(text, nil)
	return err == nil
}

func (a *API) deleteSecret(r *request) (*Done, error) {
	name := r.PathValue("name")
	text, version, err := a.document(r)
	if err != nil {
		return nil, err
	}
	if slices.Contains(secretsIn(text), name) {
		e := llm.Errorf(llm.Conflict, "The configuration uses the secret %s: take ${secret:%[1]s} out of it first.", name)
		e.Code = "secret_in_use"
		return nil, e
	}
	return &Done{"deleted"}, a.Documents.DeleteSecret(r.Context(), name, version)
}
