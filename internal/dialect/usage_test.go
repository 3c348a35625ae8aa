package dialect_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/price"
	"github.com/limen-gateway/limen/internal/sse"
)

// usageCase is an answer with the usage that its vendor tells, whole and as a
// stream, and what comes of it.
type usageCase struct {
	ID, Upstream string
	Prices       price.List
	Usage        struct {
		llm.Usage
		Service string
	}
	Sum, Cost string // worked out by hand; "" is not known
	Answer    json.RawMessage
	Stream    []json.RawMessage
}

// TestUsage runs every case of testdata/usage.jsonl through the decoders, and
// through the price list.
func TestUsage(t *testing.T) {
	file, err := os.Open("testdata/usage.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c usageCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, c.run)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func (c *usageCase) run(t *testing.T) {
	want := c.Usage.Usage
	want.Service = llm.ServiceOf(c.Usage.Service)
	if want.Service.String() != c.Usage.Service {
		t.Fatalf("there is no service %q", c.Usage.Service)
	}
	check := func(how string, got llm.Usage) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", how, got, want)
		}
	}
	out := exits[c.Upstream].outbound
	call := &dialect.Call{Names: &dialect.Names{}}
	answer, err := dialect.Fold(out.Answers(call, &llm.Caps{}), c.Answer)
	if err != nil || !answer.Known {
		t.Fatalf("%v, known %v", err, answer != nil && answer.Known)
	}
	check("whole", answer.Usage)
	check("streamed", c.streamed(t, out.Answers(call, &llm.Caps{})))
	if pass := doors[c.Upstream].pass; pass != nil {
		whole, known, err := pass.Answer(c.Answer)
		if err != nil || !known {
			t.Fatalf("%v, known %v", err, known)
		}
		check("whole, looked at", whole)
		f := pass.Follow(&dialect.Request{WantsUsage: true})
		if said := dialect.Refollow(nil, c.sse(), f); !f.Done() {
			t.Errorf("the stream is not over:\n%s", said)
		}
		check("streamed, looked at", f.Usage(0))
	}
	cost, known := c.Prices.Cost(&want)
	if known != (c.Cost != "") || known && cost.String() != c.Cost {
		t.Errorf("it costs %s, %v, want %q", cost, known, c.Cost)
	}
	c.checkSum(t)
	c.told(t, want)
}

// streamed is what the last event of the stream says of usage.
func (c *usageCase) streamed(t *testing.T, d dialect.Decoder) (last llm.Usage) {
	var events []llm.Event
	var err error
	see := func(f sse.Frame) {
		if events, err = d.Frame(events, f); err != nil {
			t.Fatal(err)
		}
	}
	if c.Upstream == "bedrock.converse" {
		frames := givenFrames{raw: c.Stream}
		for f, ok := frames.Next(); ok; f, ok = frames.Next() {
			see(f)
		}
	} else {
		for f := range sse.All(bytes.NewReader(c.sse()), 1<<20) {
			see(f)
		}
	}
	for _, e := range events {
		if used, ok := e.(llm.Used); ok && used.Known {
			last = used.Usage
		}
	}
	return last
}

// sse is the stream as the vendor sends it.
func (c *usageCase) sse() (stream []byte) {
	for _, data := range c.Stream {
		var event []byte
		if c.Upstream == "openai.responses" || c.Upstream == "anthropic.messages" {
			event = []byte(dialect.Text(data, "type"))
		}
		stream = sse.Append(stream, event, data)
	}
	if c.Upstream == "openai.chat" {
		stream = append(stream, "data: [DONE]\n\n"...)
	}
	return stream
}

// told checks what a client of the same dialect is told: the very bytes, but
// for the cost in the usage.
func (c *usageCase) told(t *testing.T, want llm.Usage) {
	pass := doors[c.Upstream].pass
	if pass == nil {
		return
	}
	silent := &dialect.Request{WantsUsage: true}
	if got := pass.Priced(c.Answer, silent); !bytes.Equal(got, c.Answer) {
		t.Errorf("nobody asked, and the answer is\n%s", got)
	}
	telling := &dialect.Request{WantsUsage: true, Cost: func(u llm.Usage) (money.Amount, bool) {
		if u != want {
			t.Errorf("the cost is asked of %+v", u)
		}
		return c.Prices.Cost(&u)
	}}
	cost := c.Cost
	if cost == "" {
		cost = "null"
	}
	for how, said := range map[string]func(*dialect.Request) []byte{
		"whole":    func(req *dialect.Request) []byte { return pass.Priced(c.Answer, req) },
		"streamed": func(req *dialect.Request) []byte { return dialect.Refollow(nil, c.sse(), pass.Follow(req)) },
		"replayed": func(req *dialect.Request) []byte { return pass.Replay(nil, c.Answer, req) },
	} {
		got, otherwise := said(telling), said(silent)
		if n := bytes.Count(got, []byte(`"cost":`+cost)); n != 1 {
			t.Errorf("%s: the cost %s is told %d times in\n%s", how, cost, n, got)
		}
		without := bytes.Replace(got, []byte(`,"cost":`+cost), nil, 1)
		if stated := bytes.Contains(c.Answer, []byte(`"cost":`)); !stated && !bytes.Equal(without, otherwise) {
			t.Errorf("%s: but for the cost, it is\n%s\nand not\n%s", how, without, otherwise)
		}
	}
}

// sums are terms of tokens and dollars for a million of them, the percent of a
// service, and fees.
var sums = regexp.MustCompile(`^\(([^()]+)\)/M(?: × (\d+)%)?((?: \+ \d+×[0-9.]+)*) = ([0-9.]+)$`)

// checkSum works out what the case says of itself.
func (c *usageCase) checkSum(t *testing.T) {
	if c.Sum == "" && c.Cost == "" {
		return
	}
	parts := sums.FindStringSubmatch(c.Sum)
	if parts == nil || parts[4] != c.Cost {
		t.Fatalf("the sum %q is none for %s", c.Sum, c.Cost)
	}
	total := products(t, parts[1])
	total.Quo(total, big.NewRat(1_000_000, 1))
	if parts[2] != "" {
		total.Mul(total, exact(t, parts[2])).Quo(total, big.NewRat(100, 1))
	}
	if parts[3] != "" {
		total.Add(total, products(t, strings.TrimPrefix(parts[3], " + ")))
	}
	if total.Cmp(exact(t, c.Cost)) != 0 {
		t.Errorf("%s is %s", c.Sum, total.FloatString(12))
	}
}

func products(t *testing.T, terms string) *big.Rat {
	total := new(big.Rat)
	for term := range strings.SplitSeq(terms, " + ") {
		n, each, _ := strings.Cut(term, "×")
		total.Add(total, new(big.Rat).Mul(exact(t, n), exact(t, each)))
	}
	return total
}

func exact(t *testing.T, text string) *big.Rat {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return n
}
