package reconcile

import (
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/limen-gateway/limen/internal/money"
)

// The examples of the vendors' documentation, with amounts in all the forms
// that were seen.
const (
	openAI = `{"object":"page","data":[
		{"object":"bucket","start_time":1772323200,"end_time":1772409600,"results":[
			{"object":"organization.costs.result","amount":{"value":0.06,"currency":"usd"},"line_item":"gpt-5-2025-08-07, input","project_id":null},
			{"object":"organization.costs.result","amount":{"value":"0.8958740000000000","currency":"usd"},"line_item":"gpt-5-2025-08-07, cached input"},
			{"object":"organization.costs.result","amount":{"value":1e-7,"currency":"usd"},"line_item":"priority | GPT-5, output, long context"},
			{"object":"organization.costs.result","amount":{"value":0.25,"currency":"usd"},"line_item":"gpt-image-1 text, input"},
			{"object":"organization.costs.result","amount":{"value":2,"currency":"usd"},"line_item":"web search tool calls"},
			{"object":"organization.costs.result","amount":{"value":0,"currency":"usd"},"line_item":"Vector storage"}]},
		{"object":"bucket","start_time":1772409600,"end_time":1772496000,"result":[
			{"amount":{"value":1,"currency":"usd"},"line_item":"gpt-5"}]},
		{"object":"bucket","start_time":1772496000,"end_time":1772582400,"results":[]}],
		"has_more":false,"next_page":null}`
	anthropic = `{"data":[{"starting_at":"2026-03-01T00:00:00Z","ending_at":"2026-03-02T00:00:00Z","results":[
			{"currency":"USD","amount":"123.45","workspace_id":null,"description":"Claude Opus 4 Usage - Input Tokens","cost_type":"tokens","context_window":"0-200k","model":"claude-opus-4-20250514","service_tier":"standard","token_type":"uncached_input_tokens"},
			{"currency":"USD","amount":"0.00000001","description":"Claude Opus 4 Usage - Output Tokens","cost_type":"tokens","model":"claude-opus-4-20250514"},
			{"currency":"USD","amount":"-10","description":"Web Search Usage","cost_type":"web_search","model":null}]}],
		"has_more":true,"next_page":"page_2"}`
	anthropicLast = `{"data":[{"starting_at":"2026-03-02T00:00:00Z","ending_at":"2026-03-03T00:00:00Z","results":[
			{"currency":"USD","amount":"100","model":"claude-opus-4-latest"}]}],"has_more":false,"next_page":null}`
)

// told is an export in short.
func told(e *Export) string {
	var b strings.Builder
	for _, l := range e.Lines {
		fmt.Fprintf(&b, "%s [%s] %s\n", l.Day[8:], l.Model, strings.TrimRight(strings.TrimRight(l.Cost.FloatString(20), "0"), "."))
	}
	fmt.Fprintf(&b, "%s to %s", e.First, e.Last)
	if e.Cut {
		b.WriteString(", cut")
	}
	return b.String()
}

func TestRead(t *testing.T) {
	const claude = "01 [claude-opus-4-20250514] 1.2345\n01 [claude-opus-4-20250514] 0.0000000001\n01 [] -0.1\n"
	const claudeLast = "02 [claude-opus-4-latest] 1\n2026-03-01 to 2026-03-02"
	for name, tt := range map[string]struct {
		files []string
		want  string
	}{
		"OpenAI":                    {[]string{openAI}, "01 [gpt-5-2025-08-07] 0.06\n01 [gpt-5-2025-08-07] 0.895874\n01 [GPT-5] 0.0000001\n01 [gpt-image-1] 0.25\n01 [] 2\n02 [gpt-5] 1\n2026-03-01 to 2026-03-03"},
		"Anthropic, the first page": {[]string{anthropic}, claude + "2026-03-01 to 2026-03-01, cut"},
		"pages in files":            {[]string{anthropic, anthropicLast}, claude + claudeLast},
		"pages one after the other": {[]string{anthropic + "\n" + anthropicLast}, claude + claudeLast},
		"pages in an array":         {[]string{"\ufeff [" + anthropic + "," + anthropicLast + "]"}, claude + claudeLast},
		"CSV":                       {[]string{"Date,Model,Cost (USD),Currency\n2026-03-01,gpt-5,0.5,usd\n2026-03-02,gpt-5,\"$1,234.50\",USD\n2026-03-03,gpt-5,-1,\n,total,9,\n2026-03-04,,,\n"}, "01 [gpt-5] 0.5\n02 [gpt-5] 1234.5\n03 [gpt-5] -1\n2026-03-01 to 2026-03-03"},
		"CSV of OpenAI's console":   {[]string{"start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item,project_id\n1772323200,1772409600,2026-03-01T00:00:00+00:00,2026-03-02T00:00:00+00:00,0.8958740000000000,usd,\"gpt-5, input\",\n1772409600,1772496000,2026-03-02T00:00:00+00:00,x,,,,\n"}, "01 [gpt-5] 0.895874\n2026-03-01 to 2026-03-01"},
		"semicolons, other names":   {[]string{"day;model_version;spend\r\n20260301;m, x;2\r\n"}, "01 [m, x] 2\n2026-03-01 to 2026-03-01"},
		"tabs, seconds, no model":   {[]string{"time\tamount\n1772323200\t3\n"}, "01 [] 3\n2026-03-01 to 2026-03-01"},
	} {
		var files [][]byte
		for _, f := range tt.files {
			files = append(files, []byte(f))
		}
		e, err := Read(files...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := told(e); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	openAIResult := func(result string) string {
		return `{"data":[{"start_time":1772323200,"results":[` + result + `]}],"has_more":false}`
	}
	for name, tt := range map[string]struct{ file, want string }{
		"nothing":              {" ", "empty"},
		"a cut file":           {openAI[:200], "no JSON"},
		"another document":     {`{"keys":[]}`, "no page of costs"},
		"another array":        {`[1]`, "no page of costs"},
		"no time":              {`{"data":[{"results":[]}]}`, "where a day begins"},
		"usage, not costs":     {openAIResult(`{"object":"organization.usage.completions.result","input_tokens":5}`), "no amount"},
		"euros":                {openAIResult(`{"amount":{"value":1,"currency":"eur"}}`), `"eur" cannot be compared`},
		"a text":               {openAIResult(`{"amount":{"value":"much","currency":"usd"}}`), `"much" is no amount`},
		"an absurd exponent":   {openAIResult(`{"amount":{"value":1e999999999,"currency":"usd"}}`), "is no amount"},
		"an absurd length":     {openAIResult(`{"amount":{"value":` + strings.Repeat("9", 10000) + `,"currency":"usd"}}`), "is no amount"},
		"cents of nothing":     {`{"data":[{"starting_at":"2026-03-01T00:00:00Z","results":[{"amount":"","currency":"USD"}]}]}`, "is no amount"},
		"no columns":           {"a,b\n1,2\n", "no column for days and costs"},
		"no cost":              {"date,b\n1,2\n", "no column for costs"},
		"no day":               {"cost,b\n1,2\n", "no column for days"},
		"a bad day":            {"date,cost\n2026-03-01,1\nsoon,2\n", `line 3: "soon" is no day`},
		"a bad cost":           {"date,cost\n2026-03-01,\"1,5\"\n", `line 2: "1,5" is no amount`},
		"pounds in a table":    {"date,cost,currency\n2026-03-01,1,GBP\n", `"GBP" cannot`},
		"a quote that is open": {"date,cost\n\"2026-03-01,1\n", "line 2"},
	} {
		_, err := Read([]byte(tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	if _, err := Read([]byte(openAI), []byte(openAI)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the same file twice: %v", err)
	}
}

func TestCompare(t *testing.T) {
	e, err := Read([]byte(openAI))
	if err != nil {
		t.Fatal(err)
	}
	own := []Own{
		{"2026-03-01", "openai", "gpt-5", 900_000_000, 10, 0},
		{"2026-03-01", "openai", "gpt-5-2025-08-07", 55_874_100, 2, 1}, // together with the line before
		{"2026-03-02", "openai", "gpt-5-mini", 500_000_000, 3, 0},
		{"2026-03-02", "openai", "gpt-free", 0, 3, 0},
		{"2026-03-04", "openai", "gpt-5", money.Dollar, 1, 0}, // not a day of the export
		{"2026-03-01", "lab", "small", money.Dollar, 1, 0},
		{"2026-03-01", "", "", 0, 5, 0},
	}
	r := Compare(e, own, "")
	want := []Row{
		{Day: "2026-03-01", Model: "", Vendor: 2 * money.Dollar, Difference: 2 * money.Dollar, Only: "vendor"},
		{Day: "2026-03-01", Model: "gpt-5", Vendor: 955_874_100, Own: 955_874_100, Calls: 12, Unpriced: 1},
		{Day: "2026-03-01", Model: "gpt-image-1", Vendor: 250_000_000, Difference: 250_000_000, Only: "vendor"},
		{Day: "2026-03-02", Model: "gpt-5", Vendor: money.Dollar, Difference: money.Dollar, Only: "vendor"},
		{Day: "2026-03-02", Model: "gpt-5-mini", Own: 500_000_000, Difference: -500_000_000, Calls: 3, Only: "limen"},
	}
	if !reflect.DeepEqual(r.Rows, want) {
		t.Errorf("rows\n%+v\nwant\n%+v", r.Rows, want)
	}
	if r.Vendor != 4_205_874_100 || r.Own != 1_455_874_100 || r.Difference != 2_750_000_000 || r.Unpriced != 1 || r.Percent() != "65.38" {
		t.Errorf("sums %s, %s, %s, %d unpriced, %s %%", r.Vendor, r.Own, r.Difference, r.Unpriced, r.Percent())
	}
	if !reflect.DeepEqual(r.Unmatched, []Unmatched{{"web search tool calls", 2 * money.Dollar}}) || !reflect.DeepEqual(r.Providers, []string{"openai"}) || !reflect.DeepEqual(r.Others, []string{"lab"}) {
		t.Errorf("unmatched %v, compared %v, not %v", r.Unmatched, r.Providers, r.Others)
	}
	if r = Compare(e, own, "lab"); r.Own != money.Dollar || len(r.Others) > 0 {
		t.Errorf("of a named provider: %s, not compared %v", r.Own, r.Others)
	}
	e.Within("2026-03-02", "2026-03-03")
	if r = Compare(e, own, "openai"); len(r.Rows) != 2 || r.First != "2026-03-02" || r.Last != "2026-03-02" {
		t.Errorf("within a day: %+v", r)
	}
}

func TestBeyond(t *testing.T) {
	for _, tt := range []struct {
		vendor    int64 // cents
		own       money.Amount
		tolerance string
		want      bool
	}{
		{10000, 100 * money.Dollar, "0", false},
		{10000, 99 * money.Dollar, "1%", false},
		{10000, 99*money.Dollar - 1, "1%", true},
		{10000, 101 * money.Dollar, "1", false},
		{10000, 101*money.Dollar + 1, "1", true},
		{10000, 101 * money.Dollar, "0.5%", true},
		{0, 0, "0%", false},
		{0, 1, "100%", true},
	} {
		e := &Export{First: "2026-03-01", Last: "2026-03-01", Lines: []Line{{Day: "2026-03-01", Model: "m", Cost: big.NewRat(tt.vendor, 100)}}}
		limit, err := Tolerance(tt.tolerance)
		if err != nil {
			t.Fatal(err)
		}
		if got := Compare(e, []Own{{"2026-03-01", "p", "m", tt.own, 1, 0}}, "p").Beyond(limit); got != tt.want {
			t.Errorf("%d cents and %s within %s: beyond is %v", tt.vendor, tt.own, tt.tolerance, got)
		}
	}
	for _, bad := range []string{"", "%", "-1%", "much", "1e400"} {
		if _, err := Tolerance(bad); err == nil {
			t.Errorf("%q is a tolerance", bad)
		}
	}
}

func TestModels(t *testing.T) {
	for item, want := range map[string]string{
		"gpt-5-2025-08-07, cached input": "gpt-5-2025-08-07", "batch | gpt-5-mini, output": "gpt-5-mini", "gpt-4o": "gpt-4o",
		"gpt-audio-mini-2025-12-15 audio, input": "gpt-audio-mini-2025-12-15", "web search tool calls": "", "Vector storage": "", "": "",
		"Image models": "", "Vector storage, hours": "", "code interpreter sessions, hours": "",
	} {
		if got := modelOf(item); got != want {
			t.Errorf("%q: got %q, want %q", item, got, want)
		}
	}
	for name, want := range map[string]string{
		"gpt-5-2025-08-07": "gpt-5", "claude-opus-4-20250514": "claude-opus-4", "claude-opus-4@20250514": "claude-opus-4", "Chat-Latest": "chat",
		"gpt-4-0613": "gpt-4-0613", "claude-opus-4-8": "claude-opus-4-8",
	} {
		if got := modelName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{openAI, anthropic, "date,cost\n2026-03-01,1\n", "[", "{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Read(data)
		if err != nil {
			return
		}
		Compare(e, []Own{{"2026-03-01", "p", "gpt-5", 1, 1, 0}}, "").Percent()
	})
}
