package llm

import (
	"slices"
	"strconv"
)

// Request is what a client asks for, in no dialect's form. A client's decoder
// makes it, an upstream's encoder says it; nothing else looks into it.
//
// Optional numbers and switches are Raw or pointers: zero is a value.
type Request struct {
	Words *Words // the client's names for places and members
	Size  int    // of the request as it came, in bytes

	Items      []Item
	Tools      []Tool
	ToolChoice ToolChoice
	Parallel   *bool
	Reasoning  ReasoningWish
	Format     Format
	Sampling   Sampling
	Limits     Limits
	Cache      Cache
	State      State
	Meta       Meta
	Choices    int // n; 0 when not said
	Logprobs   bool
	TopLogprob Raw // how many alternatives of each token; nil when not said
	Verbosity  Raw
	Modalities []string // as said; nil when not said
	Audio      Raw      // voice and format of spoken answers
	Stream     bool
	WantsUsage bool // within a stream

	// Details are reasoning_details of Chat Completions as written, by message,
	// for servers that take them back unchanged.
	Details map[int]Raw
	// Other are the members that have no place here, in their order, and what
	// an upstream that shares the client's dialect may still be told.
	Other []Member
	// Echo are members that the answer repeats as the client wrote them.
	Echo  []Member
	Notes Notes // what the decoder itself could not take over
}

// Room is memory for the request as another dialect says it: about as much as
// it took in its own.
func (r *Request) Room() []byte { return make([]byte, 0, r.Size+r.Size/8+256) }

// Member is one member of an object; Name has no quotes.
type Member struct {
	Name  string
	Value Raw
}

// Words are the names that a client's dialect has for places of a request, so
// that a refusal points to what the client wrote.
type Words struct {
	Items  string            // the member that lists messages or items
	Parts  string            // the member of a message that lists its parts
	Params map[string]string // members, by their names in Chat Completions, where they differ
	// MarksCache: clients say themselves where a prefix ends that is worth
	// caching.
	MarksCache bool
	// Shows are the calls of an upstream's own tools that answers can tell of.
	Shows []ServerKind
}

// CanShow reports whether an answer can tell of a call that the upstream ran
// itself.
func (w *Words) CanShow(kind ServerKind) bool { return w == nil || slices.Contains(w.Shows, kind) }

// Param is the client's name of a member, given Chat Completions' name of it.
func (w *Words) Param(chat string) string {
	if w != nil && w.Params[chat] != "" {
		return w.Params[chat]
	}
	return chat
}

// List is the client's name of the member that lists messages or items.
func (w *Words) List() string {
	if w == nil {
		return "messages"
	}
	return w.Items
}

// Place is the client's path of an item or a part, and of what suffix says
// below it.
func (w *Words) Place(at Pos, suffix string) string {
	return w.Within(w.List()+"["+strconv.Itoa(at.Item)+"]", at.Part) + suffix
}

// Within is the client's path of a part of what stands at a path; that itself
// when part is -1.
func (w *Words) Within(path string, part int) string {
	parts := "content"
	if w != nil {
		parts = w.Parts
	}
	if part < 0 || parts == "" {
		return path
	}
	return path + "." + parts + "[" + strconv.Itoa(part) + "]"
}

// Pos is where an item or a part stood: the index of the message or item it
// came in, and of the part within that, -1 for what is no part.
type Pos struct{ Item, Part int }

// Item is one step of a conversation: *Message, *Reasoning, *ToolCall,
// *ToolResult, *ServerCall, *NativeTurn or *Compaction. Dialects that nest calls and
// reasoning into messages are laid out flat, in the order of their parts.
type Item interface {
	// Turn is the index of the message or item that this one came in: items
	// of one turn were one message.
	Turn() int
}

// Role of a message.
type Role uint8

// The roles. System and Developer differ only in name.
const (
	User Role = iota
	Assistant
	System
	Developer
)

// Instructs reports whether the role is one of the operator's.
func (r Role) Instructs() bool { return r == System || r == Developer }

// Message is text and media of one speaker.
type Message struct {
	Pos   Pos
	Role  Role
	Name  Raw
	Phase Raw // "commentary" or "final_answer"; Responses only
	ID    Raw
	Parts []Part
	Other []Member // that have no place here, of an assistant in Chat Completions
}

// Reasoning is what a model thought, in texts that may be shown and in opaque
// state that only its origin understands.
type Reasoning struct {
	Pos    Pos
	ID     Raw
	Texts  []Thought
	Opaque []Opaque
}

// Thought is one text of Reasoning.
type Thought struct {
	Text    Raw
	Summary bool // told about the thinking, rather than thought
}

// CallKind says what sort of tool is called.
type CallKind uint8

// The kinds of tools that a client runs. The zero value is a function, whose
// arguments are an object; a custom tool takes a text. The others are tools
// of a fixed form that Responses has types of its own for.
const (
	FunctionCall CallKind = iota
	CustomCall
	ShellCall
	LocalShellCall
	ApplyPatchCall
	ToolSearchCall
)

// ToolCall is a call of a tool that the client runs.
type ToolCall struct {
	Pos       Pos
	ItemID    Raw // of the item; Responses only
	ID        Raw
	Kind      CallKind
	Name      string
	Namespace string
	// Args is a JSON string: the text of the arguments of a function, the
	// input of a custom tool. It may be half a JSON document.
	Args   Raw
	Opaque []Opaque
}

// ToolResult is what a called tool gave.
type ToolResult struct {
	Pos     Pos
	ID      Raw
	Kind    CallKind
	Name    string
	IsError bool
	Parts   []Part
}

// ServerKind says what a tool does that the upstream runs by itself.
type ServerKind uint8

// The tools of upstreams.
const (
	OtherServerTool ServerKind = iota
	WebSearch
	WebFetch
	CodeExecution
	FileSearch
	ImageGeneration
	MCP
	ComputerUse
)

// ServerCall is a call that the upstream ran itself, and what came of it.
type ServerCall struct {
	Pos     Pos
	Kind    ServerKind
	ID      Raw
	Input   Raw         // an object
	Queries []Raw       // of a search
	Sources []Source    // of a search
	Files   []FoundFile // of a search of files; nil when the client is not told
	Code    Raw
	Outputs []Raw // texts of what the code printed
	Images  []Raw // URLs of what the code drew
	// Container is where the code ran; nil when nobody said.
	Container Raw
	// Withheld: what the code gave is not in Outputs and Images, since the
	// client did not ask for it.
	Withheld bool
	Prompt   Raw // of an image
	Image    *Media
	Failed   bool
	MCP      *MCPStep // of MCP
	// Opaque is state of the call of a function that stood for this one.
	Opaque []Opaque
	// Native is the call as its own dialect writes it, one value for each
	// block or item.
	Native []Raw
}

// MCPKind says what an MCPStep tells.
type MCPKind uint8

// The steps with a server of tools.
const (
	MCPCalled   MCPKind = iota // a tool was called
	MCPListed                  // the server told its tools
	MCPAsked                   // a call waits for the client's consent
	MCPAnswered                // the client consented, or did not
)

// MCPStep is what happened with a server of tools (Model Context Protocol).
type MCPStep struct {
	Kind     MCPKind
	Label    string // of the server
	Name     string // of the tool
	Args     Raw    // a JSON string, of a call and of a question
	Output   Raw    // a JSON string; nil when the call failed
	Error    Raw    // why a call or a listing failed; nil when it did not
	Approval Raw    // ID of the question that was answered
	Approved bool   // of the answer
	Reason   Raw    // of the answer
	Tools    Raw    // the array of those that a server has
}

// Source is where an upstream found something.
type Source struct{ URL, Title Raw }

// FoundFile is a piece of a file that a search found.
type FoundFile struct {
	ID, Name, Text Raw
	Score          Raw
	Attributes     Raw // an object
}

// NativeTurn is a turn of an assistant that came back sealed, because its
// parts cannot be rebuilt from what the client's dialect shows of them.
type NativeTurn struct {
	Pos    Pos
	Opaque Opaque // of kind WholeTurn; Data is the array of blocks
	Items  []Item // what the client's dialect shows, for other upstreams
}

// Compaction stands for all that came before it.
type Compaction struct {
	Pos    Pos
	ID     Raw
	Text   Raw
	Opaque []Opaque
}

// Turn implements Item.
func (m *Message) Turn() int    { return m.Pos.Item }
func (r *Reasoning) Turn() int  { return r.Pos.Item }
func (c *ToolCall) Turn() int   { return c.Pos.Item }
func (r *ToolResult) Turn() int { return r.Pos.Item }
func (c *ServerCall) Turn() int { return c.Pos.Item }
func (t *NativeTurn) Turn() int { return t.Pos.Item }
func (c *Compaction) Turn() int { return c.Pos.Item }

// Part is a piece of a message or of a tool's result: *Text, *Refusal, *Media,
// *SearchResult or *ToolReference.
type Part interface{ part() }

// Text is a piece of text.
type Text struct {
	Pos         Pos
	Text        Raw // a JSON string
	Annotations []Annotation
	Logprobs    []Raw // elements as Chat Completions writes them
	Cache       *Breakpoint
	Opaque      []Opaque
}

// Refusal is the text in which a model refuses.
type Refusal struct {
	Pos  Pos
	Text Raw
}

// MediaKind says what a Media is.
type MediaKind uint8

// The kinds of media.
const (
	Image MediaKind = iota
	Audio
	Video
	File
)

// Media is a picture, sound, film or document: inline, at a URL, or stored at
// a vendor.
type Media struct {
	Pos        Pos
	Kind       MediaKind
	Data       Raw    // base64 as a JSON string
	URL        Raw    // of http, https or a vendor's own scheme
	FileID     Raw    // at the vendor of the client's dialect
	Text       Raw    // of a plain-text document, instead of Data
	MIME       string // "" when not known
	Name       Raw
	Context    Raw
	Detail     Raw
	Transcript Raw
	Citations  bool // the answer shall cite it
	Cache      *Breakpoint
	// At is the path of the source below the part: ".image_url.url".
	At string
}

// SearchResult is a source that the client brings along for citing.
type SearchResult struct {
	Pos       Pos
	Source    Raw
	Title     Raw
	Texts     []Raw
	Citations bool
	Cache     *Breakpoint
}

// ToolReference tells that a tool was loaded.
type ToolReference struct {
	Pos  Pos
	Name string
}

func (*Text) part()          {}
func (*Refusal) part()       {}
func (*Media) part()         {}
func (*SearchResult) part()  {}
func (*ToolReference) part() {}

// Breakpoint marks the end of a prefix that is worth caching.
type Breakpoint struct {
	TTL string // "" is the vendor's shortest
}

// Annotation cites a source for a piece of text.
type Annotation struct {
	URL, Title Raw
	Start, End int // in code points of the item's joined text
	Native     Raw // as its own dialect writes it; nil when it was made here
}

// Opaque is state of a model that must go back unchanged to where it came
// from, and nowhere else.
type Opaque struct {
	Kind   OpaqueKind
	Vendor string // "anthropic", "openai", "google", …: who can read it
	Origin string // hash of vendor, account and model family; "" when not known
	Data   Raw    // a JSON string; blocks of a turn are an array
	For    Raw    // the ID of the call it belongs to, where it is not on the call
}

// OpaqueKind says what an Opaque is.
type OpaqueKind uint8

// The kinds of opaque state.
const (
	Signature        OpaqueKind = iota // of the reasoning's text
	Redacted                           // reasoning that may not be read
	Encrypted                          // a whole reasoning item
	ThoughtSignature                   // of a call or a text
	WholeTurn                          // a whole turn that cannot be taken apart
	PlainMark                          // marks thinking that was never signed
)

// Tool is something that the model may call. Exactly one of its forms is set.
type Tool struct {
	Index     int // in the client's list
	Kind      CallKind
	Name      string
	Namespace string
	Desc      Raw
	Schema    Raw // of a function's arguments; nil when not said
	Strict    *bool
	Grammar   Raw // the format object of a custom tool, as Responses writes it
	Deferred  bool
	Cache     *Breakpoint

	Server *ServerTool // a tool that the upstream runs
	Native Raw         // the tool as the client wrote it
}

// ServerTool is a tool that the upstream runs by itself.
type ServerTool struct {
	Kind     ServerKind
	Type     string // as the client wrote it
	Location Raw    // {"country","city","region","timezone"} of the user
	Domains  []Raw  // to search in; none is all
	Blocked  []Raw
	MaxUses  Raw
	Size     string       // how much a search shall bring: "low", "medium", "high"; "" when not said
	Offline  bool         // a search may not reach the live web
	MCP      *MCPServer   // of MCP
	Files    *FileStores  // of FileSearch
	Picture  *PictureWish // of ImageGeneration
}

// FileStores are where a search looks for files, and how.
type FileStores struct {
	IDs                     []Raw
	Limit, Filters, Ranking Raw
}

// PictureWish is how an image shall be.
type PictureWish struct {
	Members []Member // that say how it shall look
	Others  []string // names of those that say how it shall be made, or told of
}

// MCPServer is a server of tools as a client names it.
type MCPServer struct {
	Label         string
	URL           string
	Connector     string
	Authorization string
	Headers       []Member
	Allowed       *MCPFilter // tools that may be called; nil is all
	Always        *MCPFilter // calls that need the client's consent
	Never         *MCPFilter // calls that do not; all others do
}

// MCPFilter chooses tools of a server. One that says nothing chooses all.
type MCPFilter struct {
	Names    []string // nil is any
	ReadOnly *bool    // as the server marks them
}

// Fits reports whether a tool is chosen.
func (f *MCPFilter) Fits(name string, readOnly bool) bool {
	switch {
	case f == nil:
		return false
	case f.Names != nil && !slices.Contains(f.Names, name):
		return false
	}
	return f.ReadOnly == nil || *f.ReadOnly == readOnly
}

// ChoiceMode says whether a model must call tools.
type ChoiceMode uint8

// The modes.
const (
	ChoiceUnset ChoiceMode = iota
	ChoiceAuto
	ChoiceNone
	ChoiceRequired
	ChoiceNamed // the one tool of Names
)

// ToolChoice says which tools the model may or must call.
type ToolChoice struct {
	Mode    ChoiceMode
	Names   []ToolName // of ChoiceNamed; or, with Allowed, the tools that may be called
	Allowed bool
	Server  ServerKind // with Hosted: the upstream's tool that must be called
	Hosted  bool
	Label   string // with Hosted: of the server whose tool must be called
	Tool    string // with Hosted: that tool; "" is any of the server's
	// Served are, with Allowed, the upstream's tools that may be called.
	Served []ServedTool
}

// ServedTool is how a client names a tool of the upstream's.
type ServedTool struct {
	Kind  ServerKind
	Label string // of its server, where it has one
	Name  string // of the tool there; "" is any of the server's
}

// ToolName is how a client names a tool.
type ToolName struct{ Namespace, Name string }

// ReasoningWish is how a request asks for thinking.
type ReasoningWish struct {
	Effort  string       // "none", "minimal" … "max"; "" when not said
	Mode    ThinkingMode // of Anthropic's `thinking`
	Budget  int64        // tokens, with ThinkingOn; 0 when not said
	Summary Raw          // "auto", "concise", "detailed", or null for none; nil when not said
	Display string       // "summarized" or "omitted"; "" when not said
	Sealed  bool         // the client takes opaque reasoning back (include)
	Native  Raw          // `thinking` as the client wrote it
	Router  Raw          // `reasoning` of Chat Completions as the client wrote it
}

// Wants reports whether the model shall think; unsaid is what holds where the
// request says nothing of it.
func (w *ReasoningWish) Wants(unsaid bool) bool {
	switch {
	case w.Mode == ThinkingOff, w.Effort == "none":
		return false
	case w.Mode == ThinkingUnset && w.Effort == "":
		return unsaid
	}
	return true
}

// ThinkingMode is a way to think.
type ThinkingMode uint8

// The ways to think.
const (
	ThinkingUnset ThinkingMode = iota
	ThinkingOff
	ThinkingOn // with a budget
	ThinkingAdaptive
	ThinkingBetweenTools
)

// Format is the form that the answer must have.
type Format struct {
	Kind   FormatKind
	Name   Raw
	Desc   Raw
	Schema Raw
	Strict *bool
}

// FormatKind is a kind of Format.
type FormatKind uint8

// The forms of answers.
const (
	FreeText FormatKind = iota
	JSONObject
	JSONSchema
)

// Sampling are the numbers that steer the choice of tokens, as written.
type Sampling struct {
	Temperature, TopP, TopK, MinP, Seed, Presence, Frequency, Repetition, LogitBias Raw
}

// Limits bound an answer.
type Limits struct {
	MaxTokens    *int64
	MaxTokensRaw string // the member's own name, when it is not the dialect's present one
	Stop         []Raw
	Truncation   Raw
	MaxToolCalls Raw
}

// Cache are wishes for the prompt cache.
type Cache struct {
	Key  Raw
	TTL  string
	Mode string      // "implicit" or "explicit"; "" when not said
	Auto *Breakpoint // the vendor places it
}

// PlacesCache reports whether breakpoints are to be put into a request that
// has none: its client could not have said them, and did not speak against it.
func (r *Request) PlacesCache(c *Caps) bool {
	return c.PlaceCache && r.Cache.Auto == nil && r.Cache.Mode != "explicit" && (r.Words == nil || !r.Words.MarksCache)
}

// State are the members that need a store.
type State struct {
	Store        *bool
	PreviousID   Raw
	Conversation Raw
	Prompt       Raw
	Background   bool
	Include      []string
	Context      Raw // context_management
}

// Meta is what is said about the call rather than to the model.
type Meta struct {
	User        Raw
	SafetyID    Raw
	Metadata    Raw
	ServiceTier string
	Safety      Raw // Gemini's safetySettings
	Prediction  Raw
	Moderation  Raw
}
