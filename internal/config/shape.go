package config

import (
	"reflect"
	"strconv"
	"strings"
)

// field is the description of one field, as its tags give it: what decoding, schema and rendering share.
type field struct {
	index []int
	name  string // as written in the document
	doc   string
	check string // name of the rule for the text of the value, or of each element
	keys  string // name of the rule for the names in a mapping
	enum  []string
	min   int64
	short bool   // a single value may stand for the whole struct: it is this field
	need  bool   // and without it there is none
	early string // what says it instead where there is no file: it must be known before the store is open

	harmless bool // the value is no secret, although others of its type are
}

// fieldsOf lists the fields of a struct that the document has. Fields without a yaml tag are not of the document,
// and neither are those that hold the name of an element in a table, or all of it.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f, option := fieldAt(t, i)
		if option == "inline" {
			for _, inner := range fieldsOf(t.Field(i).Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		}
		if f.name != "" {
			f.need = option == "short"
			f.short = f.need || option == "word"
			fields = append(fields, f)
		}
	}
	return fields
}

// of is the field in a struct that has it.
func (f *field) of(v reflect.Value) reflect.Value { return v.FieldByIndex(f.index) }

// keyOf finds the field that holds the element's name in a table.
func keyOf(t reflect.Type) (field, bool) { return fieldWith(t, "key") }

// valueOf finds the field that is all of the element.
func valueOf(t reflect.Type) (field, bool) { return fieldWith(t, "value") }

func fieldWith(t reflect.Type, wanted string) (field, bool) {
	if t.Kind() != reflect.Struct {
		return field{}, false
	}
	for i := range t.NumField() {
		if f, option := fieldAt(t, i); option == wanted {
			return f, true
		}
	}
	return field{}, false
}

func shortOf(fields []field) (field, bool) {
	for _, f := range fields {
		if f.short {
			return f, true
		}
	}
	return field{}, false
}

func fieldAt(t reflect.Type, i int) (f field, option string) {
	tag := t.Field(i).Tag
	name, option, _ := strings.Cut(tag.Get("yaml"), ",")
	f = field{
		index: []int{i},
		name:  name,
		doc:   tag.Get("doc"),
		check: tag.Get("check"),
		keys:  tag.Get("keys"),
		enum:  strings.Fields(tag.Get("enum")),
		early: tag.Get("early"),
		min:   1,
	}
	if least, err := strconv.ParseInt(tag.Get("min"), 10, 64); err == nil {
		f.min = least
	}
	return f, option
}

func names(fields []field) []string {
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return all
}

// kind is how a Go type is written in the document.
type kind int

const (
	leaf    kind = iota // one value
	object              // mapping with fixed fields: a struct
	table               // mapping with free names, in order: a slice of structs with a key field
	dict                // mapping with free names: a map
	series              // an element, or a sequence of them
	wrapper             // what its one field is
	list                // sequence: any other slice
	pointer             // what it points to, or absent
)

func kindOf(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Pointer:
		return pointer
	case reflect.Map:
		return dict
	case reflect.Slice:
		if t == reflect.TypeFor[Prices]() {
			return series
		}
		if _, keyed := keyOf(t.Elem()); keyed {
			return table
		}
		return list
	case reflect.Struct:
		if _, wrapped := valueOf(t); wrapped {
			return wrapper
		}
		if len(fieldsOf(t)) > 0 {
			return object
		}
	}
	return leaf
}

// newElement is an element of a list, table or mapping with the values it has when nothing is said.
func newElement(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	setDefaults(v)
	return v
}

func setDefaults(v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ setDefaults() }); ok {
		d.setDefaults()
	}
}

func isSecret(t reflect.Type) bool {
	return t == reflect.TypeFor[Secret]() || t == reflect.TypeFor[SecretURL]()
}
