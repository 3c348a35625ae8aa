// Package provider holds what is known of the vendors that Limen can call, as
// data: their addresses, the names of the variables that hold their keys, how
// they depart from the OpenAI dialect, and what their models can do. It also
// finds vendors in an environment and on this machine, and reads their model
// lists.
//
// It knows nothing of calls and routes, and it never holds a key: only
// the name of the variable to read it from.
package provider

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
)

// A Vendor is one company or server program that serves models.
type Vendor struct {
	Name  string // in configuration and logs: lower case, never changes
	Title string // for people

	// BaseURL is everything before the operation, such as "/chat/completions",
	// without a final slash. Marks such as {region} are filled from the
	// environment as Fill says.
	BaseURL string
	Fill    []Fill
	// Place is where in Google Cloud the models are, with marks as in BaseURL.
	// Only vendors have one whose paths name it.
	Place Place
	// Cloud is the vendor's own service, for a server that is otherwise local.
	Cloud string
	// BaseEnv are the variables that replace BaseURL. The first that is set wins.
	BaseEnv []BaseVar

	KeyEnv []string // variables that hold the key; the first that is set wins
	// Means are variables that, all set, stand for a key: the credential is
	// made of them, as Auth says.
	Means []string
	Auth  Auth
	// ByName: the environment alone does not bring this vendor about. Another
	// one has the same key.
	ByName bool

	// Speaks lists the dialects served under BaseURL. The first carries the
	// most, and is the one to translate to.
	Speaks []dialect.Name
	// Listed are the facts that stand in for the model list of a vendor that
	// gives none.
	Listed Listed
	// Same is the vendor whose models, and prices, these are at another address.
	Same string
	// Opaque is who reads the opaque state of models that it serves in OpenAI's
	// dialects; empty: the model's maker does.
	Opaque string

	// OwnedBy is what a local server writes as "owned_by" in its model list,
	// where that tells it from others on the same port. Empty: the port tells.
	OwnedBy string

	Quirks Quirks
}

// A Fill names the variables whose first set value replaces Mark in a base URL.
type Fill struct {
	Mark string
	Env  []string
	// Words are other spellings of the value: of the first pair whose From is
	// the value or "*", To, in which "*" is the value. Nil: as it is.
	Words []Pair
}

// A Place is a project of Google Cloud and one of its locations.
type Place struct{ Project, Location string }

// Listed names rows of the facts: those of a vendor there whose IDs match a
// pattern, as path.Match has it.
type Listed struct{ Vendor, Models string }

// A BaseVar is a variable that holds the address of a server. Path is appended
// where the value does not end in it already.
type BaseVar struct {
	Env  string
	Path string
}

// Auth says how a credential is sent.
type Auth uint8

const (
	Bearer       Auth = iota // Authorization: Bearer KEY
	APIKeyHeader             // api-key: KEY
	XAPIKey                  // x-api-key: KEY
	GoogAPIKey               // x-goog-api-key: KEY
	// SigV4 is as Bearer with a key; without one, requests are signed with the
	// AWS credential of the environment.
	SigV4
	// GoogleOAuth is as GoogAPIKey with a key; without one, Google's default
	// credential of this machine gets tokens. A key that is a JSON object is a
	// service account's, which does as well.
	GoogleOAuth
)

// authOf says how a credential is sent to servers of a dialect that are of no
// known vendor. Dialects that are not here take it as Bearer.
var authOf = map[dialect.Name]Auth{
	dialect.Anthropic: XAPIKey,
	dialect.Gemini:    GoogAPIKey,
	dialect.Bedrock:   SigV4,
}

// AuthOf says how the vendor takes a credential when it is spoken to in these
// dialects, best first. One that is not known to speak them takes it as is
// usual there.
func (v Vendor) AuthOf(speaks []dialect.Name) Auth {
	if len(speaks) == 0 || slices.Contains(v.Speaks, speaks[0]) {
		return v.Auth
	}
	if usual, ok := authOf[speaks[0]]; ok {
		return usual
	}
	return v.Auth
}

// Quirks are a vendor's departures from the OpenAI dialect. They hold for its
// service as a whole; what one model can or cannot do is in Model. The zero
// value is right for a server of which nothing more is known.
//
// Member names are those of a Chat Completions body.
type Quirks struct {
	// Drop, Rename and StreamUsage also hold where a client's own bytes pass.
	// Drop names top-level members that the vendor answers with an error. What
	// it merely ignores is not here.
	Drop []string
	// DropReasoning is as Drop, but only for models that reason.
	DropReasoning []string
	// Rename moves top-level members. One whose new name is taken is dropped.
	Rename      []Pair
	StreamUsage StreamUsage

	Strict    bool // an unknown member is an error: none may be added
	OneChoice bool // n other than 1 is an error
	ManyOnly  bool // n is an error when it is 1
	NoNames   bool // messages[].name is an error
	NoFiles   bool // no content part of type "file"
	// DocumentURL: files are parts of type "document_url".
	DocumentURL bool
	AudioURL    bool // sound is a URL, also where it is sent along

	TokenLimit string // the member that limits the answer; empty is "max_tokens"
	Developer  bool   // takes the role "developer"; otherwise it is sent as "system"
	// OneSystem: the chat template may demand a single system message, and
	// that it comes first.
	OneSystem bool
	// Stateless: Responses are served, but none is stored.
	Stateless bool

	Native       bool // is OpenAI's own service: knows all of its members and tools
	Breakpoints  bool // knows prompt_cache_breakpoint on parts
	CacheControl bool // knows cache_control on parts
	MaxMarks     int  // of cache_control; 0 is any number
	TopK         bool // knows top_k
	InPath       bool // the path names the model, and the body the API's version. Messages only

	// Formats lists what response_format.type may be besides "text". Nil is
	// "json_object" and "json_schema".
	Formats     []string
	SchemaAlone bool // some models take no json_schema beside tools
	SchemaWhole bool // some models take no json_schema in a stream
	NoThinkJSON bool // no json_object while the model thinks
	JSONWord    bool // no json_object where no message has the word
	TypedAnyOf  bool // schemas have a type in each alternative of an anyOf, and none beside it

	Temperature Temperature
	Tools       Tools
	Reasoning   Reasoning
	Answer      Answer
	// Variants are models for which some of this is otherwise. The first that
	// matches holds.
	Variants []Variant
}

// A Variant is what stands in place of a vendor's quirks for some of its
// models.
type Variant struct {
	Names       []string // patterns of path.Match, of the maker's own names
	Temperature *Temperature
	Tools       *Tools
	Reasoning   *Reasoning
}

// of returns the quirks that hold for a model.
func (q Quirks) of(model string) Quirks {
	name := ownName(model)
	for i := range q.Variants {
		v := &q.Variants[i]
		if !matches(v.Names, name) {
			continue
		}
		if v.Temperature != nil {
			q.Temperature = *v.Temperature
		}
		if v.Tools != nil {
			q.Tools = *v.Tools
		}
		if v.Reasoning != nil {
			q.Reasoning = *v.Reasoning
		}
		break
	}
	return q
}

// Temperature bounds what may be said of it.
type Temperature struct {
	Low, High float64 // both 0 is any
	// Zero is a JSON object whose members stand for 0, where that is an error.
	Zero string
}

// A Pair maps one word of the OpenAI dialect to a vendor's, or, in Answer, a
// vendor's to OpenAI's.
type Pair struct{ From, To string }

// StreamUsage says how the token counts of a streamed answer are had.
type StreamUsage uint8

const (
	UsageAsked  StreamUsage = iota // by sending stream_options.include_usage
	UsageAlways                    // they come unasked
)

// Tools are departures in calling tools.
type Tools struct {
	// Choice lists what tool_choice may be: "none", "auto", "required", or
	// "function" for a named one. Nil is all four.
	Choice []string
	// Thinking is Choice while the model thinks. Nil is the same as Choice.
	Thinking []string
	Words    []Pair // other spellings of the words of tool_choice

	NoParallelFlag bool // parallel_tool_calls is not known
	ParallelOff    bool // one call at a time unless parallel_tool_calls is true
	// Stream is a JSON object whose members have arguments come in pieces.
	Stream      string
	StrictAlike bool // either all functions are strict or none
	// CallID is the pattern of every call's ID. Empty is any.
	CallID string
	// AnswerFirst: no user message directly after a tool's.
	AnswerFirst bool
	Named       bool // a tool's message says its name
}

// Reasoning is how thinking is asked for, shown and given back.
type Reasoning struct {
	// On and Off are JSON objects whose members switch thinking. Empty: no switch.
	// Those of Hide keep thinking out of the answer.
	On, Off, Hide string
	Budget        string // the member that limits thinking tokens
	// Efforts are the values of reasoning_effort taken; EffortAs says which of
	// them stands for another. Nil: as the model says.
	Efforts  []string
	EffortAs []Pair
	// Out names where thinking appears in messages and deltas: a member, or
	// "content" for parts within it. Empty: it is not shown.
	Out  string
	Echo Echo
	// Tags: it may come within the text, first and between <think> and
	// </think>. With EchoTags it goes back so.
	Tags, EchoTags bool
	// Snapshots: each entry of a stream's reasoning_details may repeat those
	// before it.
	Snapshots bool
}

// Echo says when reasoning goes back to the vendor, in the member it came in.
type Echo uint8

const (
	EchoNever  Echo = iota
	EchoTools       // on the assistant messages of an open tool loop
	EchoAlways      // on every assistant message, unchanged
)

// Answer is what differs in what comes back. Where usage stands, and in which
// shape failures are told, is not here: all places and shapes are read.
type Answer struct {
	// ReasoningApart: completion_tokens leave the reasoning tokens out.
	ReasoningApart bool
	Finish         []Pair // finish reasons; "error" is a failed answer
}

// Takes reports whether the vendor takes money for a model at an address. A
// server program on a machine of one's own does not, but for what it passes on
// to its cloud.
func (v Vendor) Takes(address, model string) bool {
	if !v.Local() || v.Cloud != "" && strings.HasSuffix(model, "cloud") {
		return true
	}
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast()
	}
	return strings.Contains(host, ".") && !matches([]string{"*.local", "*.internal", "*.lan", "*.localhost"}, host)
}

// Local reports whether the vendor is a program on this machine, which needs
// no key and is found by Probe.
func (v Vendor) Local() bool { return strings.HasPrefix(v.BaseURL, "http://127.0.0.1:") }
