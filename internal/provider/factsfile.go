package provider

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limen-gateway/limen/internal/price"
)

// The form of facts in a file, in the store and on the way to a gateway: gzip
// of lines of tab-separated columns after a header that names their origin. The
// same facts always give the same bytes.
const (
	factsSchema  = "# limen model facts, schema 3"
	olderSchema  = "# limen model facts, schema 2" // its prices say less
	factsColumns = 12
	factsSize    = 4 << 20 // uncompressed, at most

	sourceLine = "# source: "
	dateLine   = "# date: "
	factsAbout = `# models.dev is under the MIT License, Copyright (c) 2025 spin.dev
# vendor, id, name, released, context, output, modalities in, modalities out, abilities, efforts, knowledge, prices
# abilities: tools, reasoning, structured output, attachments, temperature; y yes, n no, - not known
# prices: dollars per million tokens: input, output, cache read, cache write, reasoning, audio in, audio out,
# an hour's cache write, image out; then ;N: and the same for prompts of more than N tokens; then dollars for each
# ;call= and ;search=, for a call that searches ;searched=, and the percent of what tokens cost for ;flex= ;priority= ;batch= ;other=
`
)

// Row is a model at a vendor.
type Row struct {
	Vendor string
	Model  Model
}

// PackFacts writes rows in the form that ReadFacts reads. Of rows with one
// vendor and ID the first counts.
func PackFacts(origin Origin, rows []Row) ([]byte, error) {
	order := func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Vendor, b.Vendor), strings.Compare(a.Model.ID, b.Model.ID))
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, order)
	rows = slices.CompactFunc(rows, func(a, b Row) bool { return order(a, b) == 0 })

	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(z)
	fmt.Fprintf(w, "%s\n%s%s\n%s%s\n%s", factsSchema, sourceLine, oneLine(origin.Source), dateLine, oneLine(origin.Date), factsAbout)
	for _, r := range rows {
		w.WriteString(r.line())
	}
	if err := errors.Join(w.Flush(), z.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func (r *Row) line() string {
	m := &r.Model
	var abilities strings.Builder
	for _, a := range []Ability{m.Tools, m.Reasoning, m.Structured, m.Attachments, m.Temperature} {
		abilities.WriteByte(abilityMarks[a])
	}
	columns := []string{
		r.Vendor,
		m.ID,
		m.Name,
		time.Unix(m.Created, 0).UTC().Format(time.DateOnly),
		strconv.Itoa(m.Context),
		strconv.Itoa(m.MaxOutput),
		strings.Join(m.Input, ","),
		strings.Join(m.Output, ","),
		abilities.String(),
		strings.Join(m.Efforts, ","),
		m.Knowledge,
		m.Prices.String(),
	}
	for i, c := range columns {
		columns[i] = oneLine(c) // some names hold tabs
	}
	return strings.Join(columns, "\t") + "\n"
}

const abilityMarks = "-ny" // by Ability

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// ReadFacts reads what PackFacts wrote.
func ReadFacts(packed []byte) (*Facts, error) { return readFacts(bytes.NewReader(packed)) }

func readFacts(packed io.Reader) (*Facts, error) {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(z, factsSize+1))
	if err != nil {
		return nil, err
	}
	if n > factsSize {
		return nil, fmt.Errorf("more than %d bytes of facts", factsSize)
	}
	return parseFacts(text.String())
}

// maxHeader bounds what is read to know the origin.
const maxHeader = 4 << 10

func readOrigin(packed io.Reader) (Origin, error) {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return Origin{}, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxHeader))
	if err != nil {
		return Origin{}, err
	}
	return parseOrigin(string(text))
}

func parseOrigin(text string) (Origin, error) {
	lines := strings.SplitN(text, "\n", 4)
	if lines[0] != factsSchema && lines[0] != olderSchema {
		return Origin{}, fmt.Errorf("header is not %q", factsSchema)
	}
	if len(lines) < 4 || !strings.HasPrefix(lines[1], sourceLine) || !strings.HasPrefix(lines[2], dateLine) {
		return Origin{}, errors.New("header names no source and date")
	}
	origin := Origin{Source: lines[1][len(sourceLine):], Date: lines[2][len(dateLine):]}
	if _, err := time.Parse(time.DateOnly, origin.Date); err != nil {
		return Origin{}, err
	}
	return origin, nil
}

func parseFacts(text string) (*Facts, error) {
	origin, err := parseOrigin(text)
	if err != nil {
		return nil, err
	}
	f := &Facts{origin: origin, models: make(map[factKey]Model, strings.Count(text, "\n"))}
	makers := map[string]bool{}
	for _, home := range homes {
		makers[home] = true
	}
	lists := listSet{}
	var last Row
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		vendor, m, err := parseFact(strings.TrimSuffix(line, "\n"), lists)
		if err != nil {
			return nil, err
		}
		if cmp.Or(strings.Compare(last.Vendor, vendor), strings.Compare(last.Model.ID, m.ID)) >= 0 {
			return nil, fmt.Errorf("%s %s is out of order", vendor, m.ID)
		}
		if vendor != last.Vendor {
			f.vendors = append(f.vendors, vendor)
			if makers[vendor] {
				f.makers = append(f.makers, vendor)
			}
		}
		last = Row{vendor, m}
		f.models[factKey{vendor, strings.ToLower(m.ID)}] = m
	}
	return f, nil
}

// parseFact reads one line: vendor, ID, name, release date, context, greatest
// answer, modalities in and out, abilities, efforts, knowledge, prices.
func parseFact(line string, lists listSet) (vendor string, m Model, err error) {
	c := strings.Split(line, "\t")
	if len(c) != factsColumns || len(c[8]) != 5 {
		return "", Model{}, fmt.Errorf("bad line %q", line)
	}
	can := func(i int) Ability { return Ability(max(0, strings.IndexByte(abilityMarks, c[8][i]))) }
	m = Model{
		ID:          c[1],
		Name:        c[2],
		Input:       lists.of(c[6]),
		Output:      lists.of(c[7]),
		Tools:       can(0),
		Reasoning:   can(1),
		Structured:  can(2),
		Attachments: can(3),
		Temperature: can(4),
		Efforts:     lists.of(c[9]),
		Knowledge:   c[10],
	}
	m.Vision = sees(m.Input)
	released, err := time.Parse(time.DateOnly, c[3])
	if err != nil {
		return "", Model{}, err
	}
	m.Created = released.Unix()
	if m.Context, err = strconv.Atoi(c[4]); err != nil {
		return "", Model{}, err
	}
	if m.MaxOutput, err = strconv.Atoi(c[5]); err != nil {
		return "", Model{}, err
	}
	if m.Context < 0 || m.MaxOutput < 0 {
		return "", Model{}, fmt.Errorf("bad line %q", line)
	}
	if m.Prices, err = price.ParseList(c[11]); err != nil {
		return "", Model{}, err
	}
	return c[0], m, nil
}

// A listSet keeps one copy of each list, keyed by its words with commas.
type listSet map[string][]string

func (s listSet) of(words string) []string {
	if words == "" {
		return nil
	}
	l, ok := s[words]
	if !ok {
		l = strings.Split(words, ",")
		s[words] = l
	}
	return l
}
