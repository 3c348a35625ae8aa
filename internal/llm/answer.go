package llm

// Answer is a whole answer: the fold of its events.
type Answer struct {
	ID      Raw
	Model   Raw
	Created int64
	Choices []Choice
	Usage   Usage
	Known   bool // Usage has figures of the upstream
	Notes   Notes
}

// Choice is one of the answers that were asked for.
type Choice struct {
	// Items are *Message, *Reasoning, *ToolCall and *ServerCall in the order
	// in which they began.
	Items    []Item
	Finish   Finish
	Finished bool
}

// Folder folds events into an Answer. It clones what it keeps only when Keep
// is set: events of a whole answer share the answer's memory.
type Folder struct {
	Keep   bool
	Answer Answer

	open []folded
}

// folded is an item while its events come.
type folded struct {
	item   Item
	choice int
	texts  []growing
}

// growing is a text, part by part.
type growing struct {
	part    int
	channel Channel
	text    Raw
	whole   bool // text is a delta's own, not yet copied
}

func (f *Folder) kept(r Raw) Raw {
	if f.Keep {
		return r.Clone()
	}
	return r
}

func (f *Folder) choice(n int) *Choice {
	for len(f.Answer.Choices) <= n {
		f.Answer.Choices = append(f.Answer.Choices, Choice{})
	}
	return &f.Answer.Choices[n]
}

// Item is the item of that number as far as it is known: its texts are filled
// in when it closes.
func (f *Folder) Item(n int) Item { return f.open[n].item }

// Add takes the next event.
func (f *Folder) Add(e Event) {
	switch e := e.(type) {
	case Start:
		f.Answer.ID, f.Answer.Model, f.Answer.Created = f.kept(e.ID), f.kept(e.Model), e.Created
	case Open:
		f.begin(e)
	case Delta:
		f.grow(&f.open[e.Item], e)
	case Annotate:
		if m, ok := f.open[e.Item].item.(*Message); ok {
			a := e.Annotation
			a.URL, a.Title, a.Native = f.kept(a.URL), f.kept(a.Title), f.kept(a.Native)
			t := lastText(m)
			t.Annotations = append(t.Annotations, a)
		}
	case Logprobs:
		if m, ok := f.open[e.Item].item.(*Message); ok {
			t := lastText(m)
			for _, token := range e.Tokens {
				t.Logprobs = append(t.Logprobs, f.kept(token))
			}
		}
	case Picture:
		if m, ok := f.open[e.Item].item.(*Message); ok {
			media := *e.Media
			media.Data, media.URL = f.kept(media.Data), f.kept(media.URL)
			m.Parts = append(m.Parts, &media)
		}
	case Seal:
		f.seal(f.open[e.Item].item, e.Opaque)
	case Close:
		f.end(&f.open[e.Item], e)
	case Used:
		f.Answer.Usage, f.Answer.Known = e.Usage, e.Known
	case Finish:
		c := f.choice(e.Choice)
		e.StopSeq, e.Detail = f.kept(e.StopSeq), f.kept(e.Detail)
		if e.Turn != nil {
			turn := *e.Turn
			turn.Data = f.kept(turn.Data)
			e.Turn = &turn
		}
		c.Finish, c.Finished = e, true
	case Note:
		f.Answer.Notes.Add(e.Notes)
	}
}

func (f *Folder) begin(e Open) {
	pos := Pos{Item: e.Item, Part: e.Block}
	var item Item
	switch e.Kind {
	case MessageItem:
		item = &Message{Pos: pos, Role: Assistant, ID: f.kept(e.ID), Phase: f.kept(e.Phase)}
	case ReasoningItem:
		item = &Reasoning{Pos: pos, ID: f.kept(e.ID)}
	case CallItem:
		item = &ToolCall{Pos: pos, ItemID: f.kept(e.ID), ID: f.kept(e.CallID), Name: e.Name, Namespace: e.Space, Kind: e.Call}
	case ServerItem:
		item = &ServerCall{Pos: pos, ID: f.kept(e.ID), Kind: e.Server}
	}
	for _, o := range e.Opaque {
		f.seal(item, o)
	}
	f.open = append(f.open, folded{item: item, choice: e.Choice})
	c := f.choice(e.Choice)
	c.Items = append(c.Items, item)
}

func (f *Folder) grow(it *folded, e Delta) {
	for i := len(it.texts) - 1; i >= 0; i-- {
		g := &it.texts[i]
		if g.part != e.Part || g.channel != e.Channel {
			continue
		}
		if g.whole { // the second piece: from now on the text is our own
			g.text, g.whole = append(make(Raw, 0, 2*len(g.text)+len(e.Data)), g.text...), false
		}
		g.text = append(append(g.text[:len(g.text)-1], e.Data.Inner()...), '"')
		return
	}
	it.texts = append(it.texts, growing{part: e.Part, channel: e.Channel, text: f.kept(e.Data), whole: true})
}

// end fills the item's texts in.
func (f *Folder) end(it *folded, e Close) {
	switch item := it.item.(type) {
	case *Message:
		item.Parts = append(parts(it.texts, item.Parts), media(item.Parts)...)
	case *Reasoning:
		for _, g := range it.texts {
			item.Texts = append(item.Texts, Thought{Text: g.text, Summary: g.channel == SummaryChannel})
		}
	case *ToolCall:
		for _, g := range it.texts {
			item.Args = g.text
		}
	case *ServerCall:
		if e.Server != nil {
			pos := item.Pos
			*item = *e.Server
			item.Pos = pos
			if f.Keep {
				item.Clone()
			}
		}
	}
	it.texts = nil
}

// parts are the texts of a message; what was said about them so far stands in
// the texts among said.
func parts(texts []growing, said []Part) []Part {
	var out []Part
	var sound *Media
	for _, g := range texts {
		switch g.channel {
		case TextChannel:
			out = append(out, &Text{Text: g.text})
		case RefusalChannel:
			out = append(out, &Refusal{Text: g.text})
		case AudioChannel, TranscriptChannel:
			if sound == nil {
				sound = &Media{Kind: Audio}
				out = append(out, sound)
			}
			if g.channel == AudioChannel {
				sound.Data = g.text
			} else {
				sound.Transcript = g.text
			}
		}
	}
	for _, p := range said {
		about, ok := p.(*Text)
		if !ok {
			continue
		}
		var last *Text
		for _, p := range out {
			if t, ok := p.(*Text); ok {
				last = t
			}
		}
		if last == nil {
			last = &Text{Text: Raw(`""`)}
			out = append(out, last)
		}
		last.Annotations, last.Logprobs, last.Opaque = about.Annotations, about.Logprobs, about.Opaque
	}
	return out
}

func media(said []Part) []Part {
	var out []Part
	for _, p := range said {
		if m, ok := p.(*Media); ok {
			out = append(out, m)
		}
	}
	return out
}

// lastText is the part that holds what is said about a message's text while
// the message is open.
func lastText(m *Message) *Text {
	for _, p := range m.Parts {
		if t, ok := p.(*Text); ok {
			return t
		}
	}
	t := &Text{}
	m.Parts = append(m.Parts, t)
	return t
}

func (f *Folder) seal(item Item, o Opaque) {
	o.Data, o.For = f.kept(o.Data), f.kept(o.For)
	switch item := item.(type) {
	case *Reasoning:
		item.Opaque = append(item.Opaque, o)
	case *ToolCall:
		item.Opaque = append(item.Opaque, o)
	case *Message:
		t := lastText(item)
		t.Opaque = append(t.Opaque, o)
	}
}

// Clone gives the call memory of its own.
func (c *ServerCall) Clone() {
	for _, r := range []*Raw{&c.ID, &c.Input, &c.Code, &c.Container, &c.Prompt} {
		*r = r.Clone()
	}
	for _, list := range []*[]Raw{&c.Queries, &c.Outputs, &c.Images, &c.Native} {
		own := make([]Raw, len(*list))
		for i, r := range *list {
			own[i] = r.Clone()
		}
		*list = own
	}
	sources := make([]Source, len(c.Sources))
	for i, s := range c.Sources {
		sources[i] = Source{s.URL.Clone(), s.Title.Clone()}
	}
	c.Sources = sources
	if c.Files != nil {
		files := make([]FoundFile, len(c.Files))
		for i, f := range c.Files {
			files[i] = FoundFile{f.ID.Clone(), f.Name.Clone(), f.Text.Clone(), f.Score.Clone(), f.Attributes.Clone()}
		}
		c.Files = files
	}
	if c.MCP != nil {
		step := *c.MCP
		for _, r := range []*Raw{&step.Args, &step.Output, &step.Error, &step.Approval, &step.Reason, &step.Tools} {
			*r = r.Clone()
		}
		c.MCP = &step
	}
	if c.Image != nil {
		image := *c.Image
		image.Data, image.URL = image.Data.Clone(), image.URL.Clone()
		c.Image = &image
	}
}
