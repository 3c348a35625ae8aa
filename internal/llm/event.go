package llm

// Event is a step of an answer. An upstream's decoder makes them, a client's
// encoder tells them; whole answers are told in the same steps. What they hold
// shares memory with the frame that they came from: whoever keeps an event
// beyond the next one clones it.
//
// The order that every decoder keeps (checked by llmtest.Check): Start first;
// Delta, Annotate, Logprobs, Seal and Close only between an item's Open and
// its Close; every item closed before the Finish of its choice; one Finish for
// each choice. A failure is no event but an error.
type Event interface{ event() }

// ItemKind is what an item of an answer is.
type ItemKind uint8

// The kinds of items.
const (
	MessageItem ItemKind = iota
	ReasoningItem
	CallItem
	ServerItem // told whole, by Close.Server, unless it is Live
)

// Channel is where the text of a Delta belongs.
type Channel uint8

// The channels. Each belongs to one kind of item.
const (
	TextChannel       Channel = iota // of a message
	RefusalChannel                   // of a message
	AudioChannel                     // of a message: base64
	TranscriptChannel                // of a message: what the audio says
	ThinkingChannel                  // of reasoning: the chain itself
	SummaryChannel                   // of reasoning: told about it
	ArgsChannel                      // of a call: text of the arguments, or of a custom tool's input
)

// Start begins an answer.
type Start struct {
	ID      Raw   // as the upstream calls it; may be nil
	Model   Raw   // which answered; may be nil
	Created int64 // Unix seconds; 0 when not known
}

// Open begins an item. Items are numbered from 0 in the order they begin,
// over all choices.
type Open struct {
	Item   int
	Choice int
	Kind   ItemKind
	ID     Raw      // the item's own, may be nil
	Block  int      // position among the upstream's blocks or parts
	CallID Raw      // of a call; never blank
	Name   string   // of a call
	Space  string   // of a call: the tool's namespace
	Call   CallKind // of a call
	Phase  Raw
	Server ServerKind
	// Live: of a ServerItem, it is told as it goes on. Name and Space are then
	// those of a tool and its server, and its arguments come in deltas.
	Live bool
	// Opaque of a call stands with its beginning, where it is known by then.
	Opaque []Opaque
}

// Delta is a piece of text of an item. Part counts the texts of an item that
// the upstream keeps apart, from 0.
type Delta struct {
	Item, Part int
	Channel    Channel
	Data       Raw // a JSON string
}

// Annotate cites a source for what an item says.
type Annotate struct {
	Item       int
	Annotation Annotation
}

// Picture is an image within a message.
type Picture struct {
	Item  int
	Media *Media
}

// Logprobs of tokens of an item, as Chat Completions writes them.
type Logprobs struct {
	Item   int
	Tokens []Raw
}

// Seal brings opaque state of an item.
type Seal struct {
	Item   int
	Opaque Opaque
}

// Running says that a live ServerItem has all that it was asked with, and is
// run.
type Running struct{ Item int }

// Close ends an item.
type Close struct {
	Item   int
	Server *ServerCall // of a ServerItem: the call, whole
}

// Used tells what was used so far; the last one counts.
type Used struct {
	Usage Usage
	Known bool // it has figures
}

// Reason is why a choice ended.
type Reason uint8

// The reasons.
const (
	Stopped Reason = iota
	LengthReached
	ToolsCalled
	Filtered // cut by a content filter
	Refused  // by the model itself
	Paused   // the upstream wants the turn back to go on
	WindowFull
	Compacted
)

// Finish ends a choice.
type Finish struct {
	Choice  int
	Reason  Reason
	StopSeq Raw // the sequence that was hit
	Detail  Raw // why it was refused, as a text
	// Turn carries the whole turn where its parts do not make it up: what the
	// client must give back for the upstream to go on.
	Turn *Opaque
}

// Note tells what was skipped or assumed of the upstream's answer.
type Note struct{ Notes Notes }

// Ping is a sign of life.
type Ping struct{}

func (Start) event()    {}
func (Open) event()     {}
func (Delta) event()    {}
func (Annotate) event() {}
func (Picture) event()  {}
func (Logprobs) event() {}
func (Seal) event()     {}
func (Running) event()  {}
func (Close) event()    {}
func (Used) event()     {}
func (Finish) event()   {}
func (Note) event()     {}
func (Ping) event()     {}
