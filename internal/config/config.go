// Package config is the one document that says what Limen offers and how it behaves: limen.yaml.
//
// It reads the document strictly, reports every problem with its place in the file, fills in defaults, describes
// itself as JSON Schema, and watches the file for changes. One set of struct tags below drives all of that.
// It knows nothing of HTTP, of vendors' protocols or of the store, and it never changes what it has handed out:
// a *Config is read-only, and a reload is a new one.
package config

// Config is the whole document. Fields stand in the order in which they are shown to people.
//
// Tags: yaml is the field's name; doc its line in the schema; check names the rule for its text (see ruleNamed);
// keys the rule for the names in a mapping; enum the only words allowed; min the least number (1 when absent); early what
// says it where the document is in the store, which must be open before.
// A slice whose elements have a `yaml:",key"` field is written as a mapping and keeps the order of the file; a
// `yaml:",value"` field of theirs is all of the element. The fields of an `yaml:",inline"` field stand among its own.
// A single value may stand for a struct with a field that is "short", without which there is none, or "word".
type Config struct {
	Listen      string   `yaml:"listen" check:"address" doc:"Address to listen on, host:port."`
	Data        string   `yaml:"data" early:"--data or LIMEN_DATA" doc:"Directory for everything that outlives the process. Absent: what a service manager gives ($STATE_DIRECTORY), else ./limen-data."`
	PublicURL   string   `yaml:"public_url" check:"public url" doc:"URL under which clients reach Limen, as shown in messages."`
	BehindProxy bool     `yaml:"behind_proxy" doc:"TLS ends in front of Limen: no warning about plain HTTP on a listener that others can reach."`
	TLS         TLS      `yaml:"tls" doc:"Serve HTTPS: with cert and key, or with acme."`
	Login       Login    `yaml:"login" doc:"How people log in to the console."`
	CORS        CORS     `yaml:"cors" doc:"Browsers of other origins. Off when empty."`
	Log         Log      `yaml:"log" doc:"Limen's own log."`
	Limits      Limits   `yaml:"limits" doc:"Sizes and numbers beyond which a message or a call is refused."`
	Timeouts    Timeouts `yaml:"timeouts" doc:"How long each step may take."`
	Keys        Keys     `yaml:"keys" doc:"Keys that Limen issues to clients."`
	Refresh     Duration `yaml:"refresh" doc:"How often the providers' lists of models are read again."`
	Retries     Retries  `yaml:"retries" doc:"Further attempts at a call that failed before its client had anything of the answer."`
	State       State    `yaml:"state" doc:"Responses and conversations, which are kept so that clients can go on from them."`
	Usage       Usage    `yaml:"usage" doc:"Records of calls. What they add up to is kept for good."`
	Sockets     bool     `yaml:"sockets" doc:"Serve Responses over WebSockets too."`
	// A word, because YAML's readers differ on whether off is false.
	ReasoningMemory string     `yaml:"reasoning_memory" enum:"on off" doc:"Keep, in memory, the models' sealed reasoning for clients that do not send it back."`
	Tools           Tools      `yaml:"tools" doc:"Tools of Responses that Limen runs itself, for models whose upstream has none."`
	Prices          PriceRules `yaml:"prices" doc:"What becomes of what calls cost, and of calls whose price is not known."`
	Alerts          Alerts     `yaml:"alerts" doc:"Who is told when much of a budget is spent."`
	Providers       []Provider `yaml:"providers" doc:"Upstreams by name. A vendor that Limen knows needs no more than its name and a key."`
	Models          []Model    `yaml:"models" doc:"Models under names of your own, by the ID that clients use."`
}

// TLS is off unless Enabled. Certificate files and ACME exclude each other.
type TLS struct {
	Cert string `yaml:"cert" doc:"File with the certificate chain, PEM."`
	Key  string `yaml:"key" doc:"File with the private key, PEM."`
	ACME *ACME  `yaml:"acme" doc:"Obtain and renew certificates automatically (Let's Encrypt)."`
}

// Enabled reports whether Limen ends TLS itself.
func (t TLS) Enabled() bool { return t.Cert != "" || t.ACME != nil }

// ACME has at least one domain.
type ACME struct {
	Domains []string `yaml:"domains" check:"domain" doc:"Names to obtain certificates for."`
	Email   string   `yaml:"email" doc:"Where the authority sends warnings."`
	Cache   string   `yaml:"cache" doc:"Directory for certificates. Absent: inside data."`
}

type CORS struct {
	Origins []string `yaml:"origins" check:"origin" doc:"Origins that may call /v1 from a browser, such as https://chat.example.com, or * for all."`
}

type Log struct {
	Format string `yaml:"format" enum:"auto json text" early:"--log-format" doc:"auto is text on a terminal and JSON elsewhere."`
	Level  string `yaml:"level" enum:"debug info warn error" doc:"The least severe entries that are written."`
}

// Limits are of single messages, in bytes after decompression, and of all that is under way at once.
type Limits struct {
	Body        ByteSize `yaml:"body" doc:"A request's body."`
	Event       ByteSize `yaml:"event" doc:"One event of an upstream's stream."`
	Answer      ByteSize `yaml:"answer" doc:"An upstream's answer that is not streamed."`
	Headers     ByteSize `yaml:"headers" doc:"A request's headers."`
	Concurrency int      `yaml:"concurrency" doc:"Calls at once. More are refused with 503."`
	Bodies      ByteSize `yaml:"bodies" doc:"The bodies of all requests at once. Not less than body."`
	Queue       Duration `yaml:"queue" min:"0" doc:"How long a call waits for room before it is refused."`
	CacheRead   Percent  `yaml:"cache_read_weight" min:"0" doc:"What a token that a model read from its prompt cache counts for limits of tokens."`
}

type Timeouts struct {
	Connect       Duration `yaml:"connect" doc:"Connecting to an upstream, TLS included."`
	FirstByte     Duration `yaml:"first_byte" doc:"From the request sent to the upstream's first byte."`
	Idle          Duration `yaml:"idle" doc:"Between two events of an upstream's stream."`
	Total         Duration `yaml:"total" doc:"A whole call."`
	Write         Duration `yaml:"write" doc:"A client that takes no byte."`
	Body          Duration `yaml:"body" doc:"A client that sends no byte of its body."`
	Heartbeat     Duration `yaml:"heartbeat" min:"0" doc:"Silence after which a stream gets a comment that keeps proxies from closing it. 0s: never."`
	Drain         Duration `yaml:"drain" doc:"At shutdown, for calls that are still running."`
	ShutdownDelay Duration `yaml:"shutdown_delay" min:"0" doc:"At shutdown, between unready and no longer accepting, for load balancers to notice."`
}

// Retries bound what a sick upstream costs.
type Retries struct {
	Attempts int     `yaml:"attempts" doc:"Attempts at one call, the first among them."`
	Budget   Percent `yaml:"budget" min:"0" doc:"Further attempts for a hundred calls, over ten seconds. Where there are few calls, ten are allowed. 0: none ever."`
}

// State bounds what is kept of Responses. What is over its time goes; what is too much goes from the oldest on.
type State struct {
	Retention Duration `yaml:"retention" doc:"How long a response is kept, and a conversation after its last turn."`
	MaxSize   ByteSize `yaml:"max_size" doc:"All that is kept, compressed."`
}

// Usage bounds what is kept of calls. What is over its time goes; what is too much goes from the oldest on.
type Usage struct {
	Tags      Tags     `yaml:"tags" doc:"What clients say of a call that its usage can be grouped by."`
	Retention Duration `yaml:"retention" doc:"How long the record of a call is kept, an hour at least."`
	MaxSize   ByteSize `yaml:"max_size" doc:"All records, as far as their size can be estimated."`
}

// Tags are none unless they are configured.
type Tags struct {
	Metadata []string          `yaml:"metadata" check:"tag" doc:"Members of a request's metadata. Their texts become tags with their names."`
	Headers  map[string]string `yaml:"headers" keys:"header" check:"tag" doc:"Headers, and the names of the tags that they become."`
}

// Tools are off unless they are configured.
type Tools struct {
	Timeout    Duration    `yaml:"timeout" doc:"How long one call of a tool may take."`
	MCP        MCP         `yaml:"mcp" doc:"Servers of tools (Model Context Protocol, streamable HTTP)."`
	WebSearch  *WebSearch  `yaml:"web_search" doc:"A search engine that answers with JSON, such as SearXNG, Brave or Tavily."`
	FileSearch *FileSearch `yaml:"file_search" doc:"A server with vector stores as OpenAI's API has them."`
	Code       *Code       `yaml:"code_interpreter" doc:"A tool of one of the servers that runs code."`
	Images     *Images     `yaml:"image_generation" doc:"A model that makes images."`
}

// MCP names the servers that may be called. No other is.
type MCP struct {
	Servers []MCPServer `yaml:"servers" doc:"Servers by the label under which clients name them."`
	Allow   []string    `yaml:"allow" check:"url pattern" doc:"URLs of servers that clients may name themselves: https://host/path, with *. for the subdomains of a host, and * at the end of a path. Absent: none."`
}

type MCPServer struct {
	Label   string            `yaml:",key" check:"label"`
	URL     string            `yaml:"url" check:"url" doc:"Where the server is."`
	Headers map[string]Secret `yaml:"headers" keys:"header" check:"header value" doc:"Headers sent with every request to it, such as authorization."`
}

type WebSearch struct {
	URL     string            `yaml:"url" check:"url" doc:"Where searches go, with the members of the query that are always the same, such as ?format=json."`
	Method  string            `yaml:"method" enum:"get post" doc:"get sends the words as q in the query, post as query in a JSON body."`
	APIKey  Secret            `yaml:"api_key" check:"header value" doc:"Sent as a bearer token."`
	Headers map[string]Secret `yaml:"headers" keys:"header" check:"header value" doc:"Headers sent with every search, such as x-subscription-token."`
}

func (w *WebSearch) setDefaults() { w.Method = "get" }

type FileSearch struct {
	URL     string            `yaml:"url" check:"url" doc:"Prefix of the server's operations, usually ending in /v1: searches go to vector_stores/ID/search below it."`
	APIKey  Secret            `yaml:"api_key" check:"header value" doc:"Sent as a bearer token."`
	Headers map[string]Secret `yaml:"headers" keys:"header" check:"header value" doc:"Headers sent with every search."`
}

type Code struct {
	Server   string `yaml:"mcp" doc:"Label of one of mcp.servers."`
	Tool     string `yaml:"tool" doc:"Its tool that runs code."`
	Argument string `yaml:"argument" doc:"The tool's argument that takes the code."`
}

func (c *Code) setDefaults() { c.Argument = "code" }

type Images struct {
	Model   string   `yaml:"model" doc:"ID of a model that Limen offers, whose upstream has /images/generations."`
	Timeout Duration `yaml:"timeout" doc:"How long one image may take."`
}

func (i *Images) setDefaults() { i.Timeout = 5 * minute }

type Keys struct {
	Prefix string `yaml:"prefix" enum:"limen_ sk-" doc:"What new keys begin with. Both kinds are accepted always."`
}

// Provider is one upstream. It has a base URL, or is of a vendor whose base URL is known, or both.
type Provider struct {
	Name          string            `yaml:",key" check:"provider"`
	Vendor        string            `yaml:"vendor" doc:"Vendor whose defaults apply. Absent: the one of the provider's name, if there is one."`
	BaseURL       string            `yaml:"base_url" check:"base url" doc:"Prefix of the upstream's operations, usually ending in /v1. Needed unless a vendor brings it."`
	APIKey        Secret            `yaml:"api_key" check:"header value" doc:"The upstream's key, best written as a reference such as ${OPENAI_API_KEY} or ${file:/run/secrets/openai}."`
	Speaks        []string          `yaml:"speaks" enum:"openai-chat openai-responses anthropic gemini bedrock" doc:"Dialects that the upstream understands, best first. Absent: the vendor's."`
	Models        []Pattern         `yaml:"models" doc:"Models to offer: names, offered even when the upstream does not list them, and patterns with * over those it lists. Absent: all it lists."`
	Headers       map[string]Secret `yaml:"headers" keys:"header" check:"header value" doc:"Headers added to every request."`
	Concurrency   int               `yaml:"concurrency" doc:"Calls at once. More are refused with 503. Absent: no limit but that of all calls."`
	State         string            `yaml:"state" enum:"gateway upstream" doc:"Who keeps the responses that clients can go on from: Limen (gateway), or the upstream itself. Absent: gateway."`
	Quirks        Quirks            `yaml:"quirks" doc:"Where the upstream departs from its dialect."`
	Caps          []Caps            `yaml:"caps" doc:"What models can do, where Limen does not know it or knows it wrong: by the upstream's names, or patterns with *. The first that fits counts."`
	Sockets       bool              `yaml:"sockets" doc:"Call Responses over WebSockets that are kept, where the upstream has them: a turn that goes on from another is sent as what is new in it."`
	APIKeys       []Secret          `yaml:"api_keys" check:"header value" doc:"Further keys, or all of them: each is an account of its own. A conversation stays with one; what is refused with one is tried with another."`
	Region        string            `yaml:"region" doc:"Where the upstream works, in a word of your own. Calls can ask for it."`
	ZeroRetention bool              `yaml:"zero_retention" doc:"The upstream keeps nothing of a call, by contract. Calls can ask for it."`
	Prices        []ModelPrices     `yaml:"prices" doc:"What is taken for models, where Limen does not know it or knows it wrong: by the upstream's names, or patterns with *. The first that fits counts. One price, or several with dates."`
	Markup        *Markup           `yaml:"markup" min:"0" doc:"Added to costs where budgets are charged. Absent: as for all."`
}

// StateUpstream is the word for a provider that keeps responses itself.
const StateUpstream = "upstream"

// Caps are abilities of the models whose names fit. What is not said is as it is known.
type Caps struct {
	Models     Pattern  `yaml:",key" check:"pattern"`
	Thinking   []string `yaml:"thinking" enum:"adaptive enabled disabled between_tools" doc:"Types of thinking that are taken, as Anthropic's dialect has them."`
	Efforts    []string `yaml:"efforts" enum:"none minimal low medium high xhigh max" doc:"Efforts that are taken. [none]: thinking has no degrees."`
	MaxOutput  int      `yaml:"max_output" doc:"Longest answer, in tokens: more is not asked for."`
	Sampling   *bool    `yaml:"sampling" doc:"Whether temperature and its like are taken."`
	ForcedTool *bool    `yaml:"forced_tool" doc:"Whether a call of a tool can be demanded."`
	Structured *bool    `yaml:"structured" doc:"Whether answers can be held to a JSON schema."`
	Vision     *bool    `yaml:"vision" doc:"Whether images are taken. A call with some goes to no target that takes none."`
	Tools      *bool    `yaml:"tools" doc:"Whether tools are taken. A call with some goes to no target that takes none."`
	MidSystem  *bool    `yaml:"mid_system" doc:"Whether instructions may stand within a conversation."`
	PlaceCache *bool    `yaml:"place_cache" doc:"Whether long prompts are marked for the prompt cache when the client's dialect has no marks. Absent: on for Claude and Nova."`
}

// CapsOf are what is said of a model; nil when nothing is.
func (p *Provider) CapsOf(model string) *Caps {
	for i := range p.Caps {
		if p.Caps[i].Models.Match(model) {
			return &p.Caps[i]
		}
	}
	return nil
}

type Quirks struct {
	Drop        []string          `yaml:"drop" check:"member" doc:"Members of a Chat Completions request that the upstream refuses: left out."`
	Rename      map[string]string `yaml:"rename" keys:"member" check:"member" doc:"Members of a Chat Completions request that the upstream calls otherwise: our name to its name."`
	StreamUsage *bool             `yaml:"stream_usage" doc:"Whether the upstream accepts stream_options.include_usage. Absent: the vendor's."`
}

// Model is a name that clients can use, and what stands behind it.
type Model struct {
	ID          string     `yaml:",key" check:"model"`
	Targets     []Target   `yaml:"targets" doc:"What serves the model, in order of preference: at least one provider/upstream-model."`
	Strategy    string     `yaml:"strategy" enum:"ordered weighted latency busy price" doc:"Which target serves: the first that is well, each by its weight, the quickest to begin, the least busy, or the cheapest. Absent: weighted if a weight is written, else ordered."`
	Affinity    string     `yaml:"affinity" enum:"on off" doc:"Keep a conversation with the account that served it before, whose prompt cache knows it, unless that is sick."`
	FirstToken  *Duration  `yaml:"first_token" doc:"How long an answer may take to begin while another target is left to try. Absent: any time."`
	Hedge       *Hedge     `yaml:"hedge" doc:"Ask another target as well when the first is slow to begin. It costs the tokens of both. Absent: never."`
	Continue    bool       `yaml:"continue" doc:"Have an answer that broke off go on at another target."`
	Limits      *Allowance `yaml:"limits" doc:"What the calls of the model may use, of all keys together. Absent: anything."`
	VisibleTo   []Pattern  `yaml:"visible_to" doc:"Names of the keys that see the model, or patterns with *. Absent: every key."`
	Strict      bool       `yaml:"strict" doc:"Refuse a call that could not go to the upstream as it is written, in place of noting what was changed."`
	Description string     `yaml:"description" doc:"Shown in the list of models."`
	Context     int        `yaml:"context" doc:"Size of the context window, in tokens. Absent: what the catalogue says."`
	MaxOutput   int        `yaml:"max_output" doc:"Longest answer, in tokens. Absent: what the catalogue says."`
	Price       Prices     `yaml:"price" doc:"What is taken for the model at each of its targets: one price, or several with dates. What it does not say is as it is known."`
	Markup      *Markup    `yaml:"markup" min:"0" doc:"Added to costs where budgets are charged. Absent: the provider's, else as for all."`
}

func (m *Model) setDefaults() { m.Affinity = "on" }

// Allowance bounds calls. What is not said has no limit.
type Allowance struct {
	Requests    int `yaml:"rpm" doc:"Calls in a minute."`
	Tokens      int `yaml:"tpm" doc:"Tokens in a minute, of requests and answers."`
	Daily       int `yaml:"rpd" doc:"Calls in a day."`
	Concurrency int `yaml:"concurrency" doc:"Calls at once."`
}

// Hedge is off unless it is configured.
type Hedge struct {
	After *Duration `yaml:"after" doc:"When the other is asked. Absent: when the first took longer than 95 % of its last answers did."`
	Max   Percent   `yaml:"max" min:"0" doc:"Calls in a hundred that may be made twice."`
}

func (h *Hedge) setDefaults() { h.Max = 5 }

// Target is written as "provider/upstream-model" or, to say more, as a mapping.
type Target struct {
	Upstream `yaml:"to,short" doc:"provider/upstream-model."`
	Weight   int    `yaml:"weight" doc:"Share of the calls, where the strategy goes by weight. Absent: 1."`
	When     string `yaml:"when" check:"condition" doc:"The calls that it serves: an expression of CEL over key, team, headers, metadata, model, operation, stream and tokens. Absent: all."`
}

// Default is what an empty document means.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:8080",
		Login:  Login{Passwords: PasswordsAll},
		Log:    Log{Format: "auto", Level: "info"},
		Limits: Limits{
			Body: 64 * mebibyte, Event: 16 * mebibyte, Answer: 64 * mebibyte, Headers: 64 * kibibyte,
			Concurrency: 4096, Bodies: 128 * mebibyte, Queue: 40 * millisecond, CacheRead: 100,
		},
		Timeouts: Timeouts{
			Connect: 5 * second, FirstByte: 10 * minute, Idle: 5 * minute, Total: 60 * minute,
			Write: 30 * second, Body: 60 * second, Heartbeat: 15 * second, Drain: 30 * second,
		},
		Keys:    Keys{Prefix: "limen_"},
		Tools:   Tools{Timeout: 60 * second},
		Refresh: 10 * minute,
		Retries: Retries{Attempts: 3, Budget: 10},
		State:   State{Retention: 30 * day, MaxSize: 2048 * mebibyte},
		Usage:   Usage{Retention: 30 * day, MaxSize: 2 * gigabyte},
		Prices:  PriceRules{Unknown: UnknownBudgeted},

		Sockets: true, ReasoningMemory: "on",
	}
}

// Provider finds a configured provider by its name.
func (c *Config) Provider(name string) (*Provider, bool) {
	for i := range c.Providers {
		if c.Providers[i].Name == name {
			return &c.Providers[i], true
		}
	}
	return nil, false
}

// Model finds a configured model by its ID.
func (c *Config) Model(id string) (*Model, bool) {
	for i := range c.Models {
		if c.Models[i].ID == id {
			return &c.Models[i], true
		}
	}
	return nil, false
}
