package llm

import (
	"slices"
)

// Caps is what a model at a target can do, and how its server wants things
// said. It is data, made from the catalogue, the vendor's row and the
// configuration; encoders ask it and never for a name. The zero value is a
// server of which nothing is known: it is told what the client said.
type Caps struct {
	Model  string // as the upstream calls it
	Vendor string // who reads opaque state of this model, as in Opaque.Vendor
	Origin string // hash of vendor, account and model family; "" matches any
	// Bound: the model's opaque state can only be read in the account in which
	// it was made.
	Bound bool
	// Retold: its answers hold what clients of its own dialect do not know, so
	// that they are told anew even to those.
	Retold bool

	MaxOutput        int64 // tokens; 0 when not known
	DefaultMaxTokens int64 // where a limit must be said and the client says none; 0 is the codec's own

	// Reasons: the model thinks. Doubtful where Known is false.
	Reasons, ReasonsKnown bool
	Thinking              []string // Anthropic's thinking types that it takes; nil is adaptive and disabled
	Efforts               []string // that it takes; nil is all
	Preserved             bool     // its thinking is bound to the whole prefix

	NoSampling   bool // temperature and its like are refused
	NoForcedTool bool // a tool cannot be demanded
	MidSystem    bool // instructions may stand within the conversation
	NoStructured bool // no JSON schema for answers
	// SchemaAlone: no JSON schema beside tools.
	SchemaAlone   bool
	NoStrictTools bool
	NoPrefill     bool
	Logprobs      bool // has them; the OpenAI dialects always do
	NoParallel    bool // knows no switch for parallel calls

	RemoteMedia bool // takes media by URL where its dialect does not say so
	PlaceCache  bool // cache breakpoints are put in for clients that cannot say them

	// Tokenizer counts for upstreams that do not.
	Tokenizer Tokenizer

	Chat      ChatCaps
	Anthropic AnthropicCaps
	Gemini    GeminiCaps
	Bedrock   BedrockCaps
}

// Tokenizer is how the tokens of a model are counted: by a vocabulary, and by
// how many of the model's own stand around texts.
type Tokenizer struct {
	Vocabulary string // as package tokens calls it; "" is not known
	Message    int64  // around each message
	Name       int64  // besides the name in one
	Reply      int64  // in front of the answer
	Function   int64  // around each function
	Guess      bool   // those are not all that there is
}

// ChatCaps are what servers of Chat Completions differ in. Names are members
// of its request.
type ChatCaps struct {
	NoDeveloper bool   // the role "developer" is said as "system"
	OneSystem   bool   // instructions fold into one leading system message, later ones into user turns
	TokenLimit  string // the member that limits the answer; "" is "max_completion_tokens"
	Seed        string // the member that seeds; "" is "seed"
	Drop        []string
	Rename      [][2]string
	Strict      bool // an unknown member is an error
	NoNames     bool
	NoFiles     bool
	OneChoice   bool
	ManyOnly    bool // n is an error when it is 1
	// ZeroTemperature is an object whose members stand for a temperature of 0,
	// where that is an error; "" is none.
	ZeroTemperature string
	Temperature     [2]float64 // lowest and highest; both 0 is any
	DocumentURL     bool       // files are parts of type "document_url"
	AudioURL        bool       // sound is a URL
	// ToolChoice lists what tool_choice may be: "none", "auto", "required",
	// "function". Nil is all.
	ToolChoice []string
	// ThinkingChoice is ToolChoice while the model thinks; nil is the same.
	ThinkingChoice []string
	ToolWords      [][2]string // other spellings of those
	CallID         string      // pattern of every call's ID; "" is any
	NamedTools     bool        // a tool's message says its name
	// AnswerFirst: no user message directly after a tool's.
	AnswerFirst bool
	NoCustom    bool // knows functions only
	NoGrammar   bool
	Formats     []string // of response_format, besides "text"; nil is all
	// SchemaWhole: no JSON schema for an answer that is streamed.
	SchemaWhole bool
	TypedAnyOf  bool // schemas have a type in each alternative of an anyOf, and none beside it
	// Reasoning is the member in which thinking comes and goes back.
	Reasoning string
	Echo      Echo
	// Tags: thinking may come within the text, first and between <think> and
	// </think>.
	Tags      bool
	EchoTags  bool // it goes back so
	Snapshots bool // entries of a stream's reasoning_details repeat what came before
	// On and Off are objects whose members switch thinking, those of Hide keep
	// it out of the answer.
	On, Off, Hide string
	Budget        string // the member that limits thinking tokens; "" is none
	ThinksUnasked bool   // it thinks unless it is told not to
	// NoThinkingTools: tools are refused while the model thinks. The server's
	// Responses take both.
	NoThinkingTools    bool
	NoThinkingSampling bool // temperature and its like are refused while it thinks
	NoThinkingJSON     bool // "json_object" is refused while it thinks
	JSONWord           bool // "json_object" is refused where no message has the word
	EffortAs           [][2]string
	// ParallelOff: one call at a time unless parallel calls are asked for.
	ParallelOff bool
	// ToolStream is an object whose members have arguments of calls come in
	// pieces; "" is none.
	ToolStream     string
	StrictAlike    bool // either all functions are strict or none
	MaxMarks       int  // of cache_control; 0 is any number
	NoStreamUsage  bool // does not know stream_options
	AskUsage       bool // usage of a stream comes only when asked for
	ReasoningApart bool // completion_tokens leave the reasoning out
	Breakpoints    bool // knows prompt_cache_breakpoint
	CacheControl   bool // knows cache_control on parts
	TopK           bool // knows top_k
	Finish         [][2]string
	Native         bool // is OpenAI's own service
}

// Echo says when thinking goes back to the server.
type Echo uint8

// The policies.
const (
	EchoNever  Echo = iota
	EchoTools       // on the messages of an open tool loop
	EchoAlways      // on every message of the assistant
)

// AnthropicCaps are what hosts of Anthropic's models differ in.
type AnthropicCaps struct {
	Version   string // of the API; "" is 2023-06-01
	FastSpeed bool
	Betas     []string
	// WebSearch is the version of the search tool to use; "" is the first.
	WebSearch string
	// InPath: the model is named by the path, the version by the body.
	InPath bool
}

// GeminiCaps are what Gemini models and their two hosts differ in.
type GeminiCaps struct {
	Vertex            bool
	Levels            []string // of thinking, lowest first; nil is a budget
	Budget            [2]int64 // lowest and highest; both 0 are 0 and 24576
	FunctionIDs       bool
	ResponseParts     bool // a function's response may hold media
	NeedsSignature    bool // an unsigned call is refused
	ToolsAndSearch    bool
	NoPenalties       bool
	Project, Location string
	Speech, Images    bool // can answer in sound, in pictures
}

// BedrockCaps are what model families on Bedrock differ in.
type BedrockCaps struct {
	// Family tells the form of what Converse has no members for: "anthropic",
	// "nova", "gpt-oss", "openai"; "" is none.
	Family     string
	NoStopSeqs bool
	// NoCachePoints: a model of a family that can cache, which cannot.
	NoCachePoints bool
}

// TakesEffort reports whether an effort may be said.
func (c *Caps) TakesEffort(effort string) bool {
	return c.Efforts == nil || slices.Contains(c.Efforts, effort)
}

// ThinkingTools reports whether a request has the model both think and call
// tools, where it does not do both.
func (c *Caps) ThinkingTools(req *Request) bool {
	return c.Chat.NoThinkingTools && req.Reasoning.Wants(c.Chat.ThinksUnasked) &&
		slices.ContainsFunc(req.Tools, func(t Tool) bool { return t.Server == nil })
}

// efforts from least to most.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// NearestEffort is the effort that the model takes which is nearest to the one
// wished for, the lower of two; "" when it takes none.
func (c *Caps) NearestEffort(wish string) string {
	if c.TakesEffort(wish) {
		return wish
	}
	at := slices.Index(efforts, wish)
	if at < 0 {
		return ""
	}
	for d := 1; d < len(efforts); d++ {
		if at-d > 0 && slices.Contains(c.Efforts, efforts[at-d]) {
			return efforts[at-d]
		}
		if at+d < len(efforts) && slices.Contains(c.Efforts, efforts[at+d]) {
			return efforts[at+d]
		}
	}
	return ""
}

// Reads reports whether the model can read opaque state.
func (c *Caps) Reads(o Opaque) bool {
	return o.Vendor == c.Vendor && (o.Origin == "" || c.Origin == "" || o.Origin == c.Origin)
}
