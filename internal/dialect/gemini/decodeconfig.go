package gemini

import (
	"strings"

	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// config reads generationConfig.
func (d *requestDecoder) config(v llm.Raw) error {
	if err := isObject("generationConfig", v); err != nil {
		return err
	}
	mime := ""
	for quoted, value := range jsonedit.Members(v) {
		name, value := camel(llm.Raw(quoted).Text()), llm.Raw(value)
		if !value.Given() {
			continue
		}
		at := "generationConfig." + name
		var err error
		switch name {
		case "maxOutputTokens":
			var n int64
			if n, err = integer(at, value); err == nil {
				d.req.Limits.MaxTokens = &n
			}
		case "candidateCount":
			var n int64
			if n, err = integer(at, value); err == nil {
				d.req.Choices, err = choices(at, n)
			}
		case "responseMimeType":
			err = isString(at, value)
			mime = value.Text()
		case "responseSchema":
			if err = isObject(at, value); err == nil {
				d.req.Format.Schema = jsonSchema(value)
			}
		case "responseJsonSchema":
			d.req.Format.Schema = value
		case "responseLogprobs":
			d.req.Logprobs, err = openai.Flag(at, value)
		case "logprobs":
			_, err = integer(at, value)
			d.req.TopLogprob = value
		case "stopSequences":
			err = d.stops(at, value)
		case "responseModalities":
			err = d.modalities(at, value)
		case "thinkingConfig":
			err = d.thinking(at, value)
		default:
			err = d.number(at, name, value)
		}
		if err != nil {
			return err
		}
	}
	return d.format(mime)
}

func choices(at string, n int64) (int, error) {
	if n < 1 || n > 128 {
		return 0, llm.InvalidParam("invalid_value", at, "Invalid value for '%s': %d. It must be between 1 and 8.", at, n)
	}
	return int(n), nil
}

// number reads a member that is a number, and notes what has no place.
func (d *requestDecoder) number(at, name string, value llm.Raw) error {
	s := &d.req.Sampling
	into := map[string]*llm.Raw{
		"temperature": &s.Temperature, "topP": &s.TopP, "topK": &s.TopK, "seed": &s.Seed,
		"presencePenalty": &s.Presence, "frequencyPenalty": &s.Frequency,
	}[name]
	if into == nil {
		d.req.Notes.Drop(at)
		return nil
	}
	if value.Kind() != jsonedit.KindNumber {
		return openai.WrongType(at, "a number", value)
	}
	*into = value
	return nil
}

func (d *requestDecoder) stops(at string, v llm.Raw) error {
	if err := isArray(at, v); err != nil {
		return err
	}
	for s := range jsonedit.Elements(v) {
		if err := isString(at, s); err != nil {
			return err
		}
		d.req.Limits.Stop = append(d.req.Limits.Stop, s)
	}
	return nil
}

func (d *requestDecoder) modalities(at string, v llm.Raw) error {
	if err := isArray(at, v); err != nil {
		return err
	}
	for m := range jsonedit.Elements(v) {
		d.req.Modalities = append(d.req.Modalities, strings.ToLower(llm.Raw(m).Text()))
	}
	return nil
}

// thinking reads thinkingConfig.
func (d *requestDecoder) thinking(at string, v llm.Raw) error {
	if err := isObject(at, v); err != nil {
		return err
	}
	r := &d.req.Reasoning
	r.Native = v
	for quoted, value := range jsonedit.Members(v) {
		value := llm.Raw(value)
		switch name := camel(llm.Raw(quoted).Text()); name {
		case "thinkingLevel":
			if level := strings.ToLower(value.Text()); level != "thinking_level_unspecified" {
				r.Effort = level
			}
		case "thinkingBudget":
			n, err := integer(at+"."+name, value)
			switch {
			case err != nil:
				return err
			case n == 0:
				r.Effort, r.Mode = "none", llm.ThinkingOff
			case n > 0:
				r.Mode, r.Budget = llm.ThinkingOn, n
			}
		case "includeThoughts":
			shown, err := openai.Flag(at+"."+name, value)
			if err != nil {
				return err
			}
			if shown {
				r.Summary = llm.Raw(`"auto"`)
			}
		default:
			d.req.Notes.Drop(at + "." + name)
		}
	}
	return nil
}

func (d *requestDecoder) format(mime string) error {
	f := &d.req.Format
	const at = "generationConfig.responseMimeType"
	switch {
	case mime != "" && mime != "application/json" && mime != "text/plain":
		return dialect.NotServed(at, "'%s' is %s, which cannot be asked of this model. Use application/json with a schema.", at, mime)
	case f.Schema.Given() && mime != "text/plain":
		f.Kind, f.Name = llm.JSONSchema, llm.Raw(`"response"`)
	case mime == "application/json":
		f.Kind = llm.JSONObject
	default:
		f.Schema = nil
	}
	return nil
}

// counts are keywords whose numbers this dialect writes as strings.
var counts = map[string]bool{
	"minItems": true, "maxItems": true, "minLength": true, "maxLength": true, "minProperties": true, "maxProperties": true,
}

// jsonSchema is a schema of this dialect, which follows OpenAPI 3.0, as JSON
// Schema: types in lower case, "nullable" as a type.
func jsonSchema(schema llm.Raw) llm.Raw {
	var w jsonedit.Writer
	writeSchema(&w, schema)
	return w.Bytes()
}

func writeSchema(w *jsonedit.Writer, schema llm.Raw) {
	if schema.Kind() != jsonedit.KindObject {
		w.Raw(schema)
		return
	}
	nullable := string(dialect.Member(schema, "nullable")) == "true"
	w.BeginObject()
	for quoted, value := range jsonedit.Members(schema) {
		value := llm.Raw(value)
		name := camel(llm.Raw(quoted).Text())
		switch {
		case name == "nullable", name == "propertyOrdering": // the order is that of properties
			continue
		case name == "type" && value.IsText():
			w.Name("type")
			writeType(w, strings.ToLower(value.Text()), nullable)
			continue
		case name == "items", name == "additionalProperties":
			w.Name(name)
			writeSchema(w, value)
			continue
		case name == "anyOf":
			w.Array(name)
			for s := range jsonedit.Elements(value) {
				writeSchema(w, s)
			}
			if nullable && dialect.Member(schema, "type") == nil {
				w.Raw([]byte(`{"type":"null"}`))
			}
			w.EndArray()
			continue
		case name == "properties", name == "defs", name == "$defs":
			w.RawName(quoted)
			w.BeginObject()
			for property, s := range jsonedit.Members(value) {
				w.RawName(property)
				writeSchema(w, s)
			}
			w.EndObject()
			continue
		}
		if n, ok := count(value); ok && counts[name] {
			w.SetInt(name, n)
			continue
		}
		w.RawName(quoted)
		w.Raw(value)
	}
	w.EndObject()
}

func writeType(w *jsonedit.Writer, name string, nullable bool) {
	if !nullable || name == "null" {
		w.Text(name)
		return
	}
	w.BeginArray()
	w.Text(name)
	w.Text("null")
	w.EndArray()
}
