package admin

import (
	"bytes"
	"reflect"
)

// handler is what an operation does, with the types of what it takes and what
// it answers: its description is made of them.
type handler struct {
	serve func(*request) (any, error)
	in    reflect.Type // of the body; nil where it reads none
	out   reflect.Type // of the answer; nil where that is no JSON
	kinds []string     // media types of such an answer
	leads bool         // the answer sends a browser elsewhere
}

// gives is an operation that reads no body. Out is a pointer, so that one
// function serves for all of them: each more would have the text of its struct
// in the binary.
func gives[Out any](serve func(*request) (Out, error)) handler {
	return handler{
		serve: func(r *request) (any, error) { return serve(r) },
		out:   reflect.TypeFor[Out]().Elem(),
	}
}

// takes is an operation that reads a body, strictly. In and Out are pointers.
func takes[In, Out any](serve func(*request, In) (Out, error)) handler {
	body := reflect.TypeFor[In]().Elem()
	return handler{
		serve: func(r *request) (any, error) {
			in := reflect.New(body).Interface()
			if err := decode(r.Body, in); err != nil {
				return nil, err
			}
			return serve(r, in.(In))
		},
		in: body, out: reflect.TypeFor[Out]().Elem(),
	}
}

// streams is an operation whose answer is of one of some media types.
func streams(serve func(*request) (stream, error), kinds ...string) handler {
	return handler{serve: func(r *request) (any, error) { return serve(r) }, kinds: kinds}
}

// leads is an operation that sends a browser elsewhere.
func leads(serve func(*request) (*redirect, error)) handler {
	return handler{serve: func(r *request) (any, error) { return serve(r) }, leads: true}
}

// partial is a body with members of T, of which those that are absent stay as
// they are.
type partial[T any] struct{ text []byte }

// UnmarshalJSON keeps the text, for over.
func (p *partial[T]) UnmarshalJSON(text []byte) error {
	p.text = bytes.Clone(text)
	return nil
}

// over sets the members that are in the body.
func (p *partial[T]) over(members *T) error { return decode(bytes.NewReader(p.text), members) }

// of is what it has members of.
func (partial[T]) of() reflect.Type { return reflect.TypeFor[T]() }
