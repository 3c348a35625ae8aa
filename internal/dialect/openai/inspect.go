package openai

import (
	"errors"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
)

// ScanError is what a client gets whose body did not pass the strict look.
func ScanError(err error) *llm.Error {
	e := &llm.Error{Kind: llm.Invalid, Err: err, Message: "We could not parse the JSON body of your request: " + err.Error() + "."}
	var scan *jsonedit.Error
	if errors.As(err, &scan) && (scan.Reason == jsonedit.Duplicate || scan.Reason == jsonedit.Case) {
		e.Code, e.Param = "invalid_value", scan.Name
		e.Message = "The body of your request is ambiguous: " + err.Error() + "."
	}
	return e
}

// Missing is the error about a member that must be there.
func Missing(param string) *llm.Error {
	return llm.InvalidParam("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
}

// WrongType is the error about a member of another type than it must have.
func WrongType(param, want string, got []byte) *llm.Error {
	return llm.InvalidParam("invalid_type", param, "Invalid type for '%s': expected %s, but got %s instead.", param, want, kindName(got))
}

func kindName(value []byte) string {
	switch jsonedit.KindOf(value) {
	case jsonedit.KindNull:
		return "null"
	case jsonedit.KindBool:
		return "a boolean"
	case jsonedit.KindNumber:
		return "a number"
	case jsonedit.KindString:
		return "a string"
	case jsonedit.KindArray:
		return "an array"
	default:
		return "an object"
	}
}

// Model reads the model of a request; value is nil when it is absent.
func Model(value []byte) (string, error) {
	if value == nil || jsonedit.KindOf(value) == jsonedit.KindNull {
		return "", Missing("model")
	}
	model, ok := jsonedit.Unquote(value)
	if !ok {
		return "", WrongType("model", "a string", value)
	}
	if model == "" {
		return "", llm.InvalidParam("invalid_value", "model", "Invalid value for 'model': it is empty. GET /v1/models lists the IDs.")
	}
	return model, nil
}

// Flag reads an optional boolean; null and absence are false.
func Flag(param string, value []byte) (bool, error) {
	switch {
	case value == nil || jsonedit.KindOf(value) == jsonedit.KindNull:
		return false, nil
	case jsonedit.KindOf(value) != jsonedit.KindBool:
		return false, WrongType(param, "a boolean", value)
	}
	return value[0] == 't', nil
}

// EmptyArray reports whether an array has no elements.
func EmptyArray(array []byte) bool {
	for range jsonedit.Elements(array) {
		return false
	}
	return true
}
