// Package rule decides by conditions that operators write: expressions of CEL
// over what is known of a request. A rule is compiled once, when a
// configuration is read, and is safe for concurrent use.
package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Vars tells what a rule asks about a request. It is asked only for what the
// rule names: a string for "key", "team", "model" and "operation", a
// map[string]string for "headers" and "metadata", a bool for "stream" and an
// int64 for "tokens".
type Vars interface {
	Var(name string) any
}

// Rule is a condition.
type Rule struct {
	text    string
	program cel.Program
}

// maxCost bounds what one evaluation may take, in CEL's units: about a
// millisecond at the very most.
const maxCost = 10_000

// maxText bounds a rule's text, in characters.
const maxText = 4096

// language is the same for all rules. A header that is not there reads as
// empty text, so that a comparison with it is false and no failure; has() would
// find it all the same, and is left out.
var language = sync.OnceValues(func() (*cel.Env, error) {
	texts := cel.MapType(cel.StringType, cel.StringType)
	return cel.NewEnv(
		cel.Variable("key", cel.StringType), cel.Variable("team", cel.StringType),
		cel.Variable("model", cel.StringType), cel.Variable("operation", cel.StringType),
		cel.Variable("headers", texts), cel.Variable("metadata", texts),
		cel.Variable("stream", cel.BoolType), cel.Variable("tokens", cel.IntType),
		cel.ClearMacros(), cel.Macros(slices.DeleteFunc(slices.Clone(cel.StandardMacros), func(m cel.Macro) bool { return m.Function() == "has" })...),
		cel.ParserExpressionSizeLimit(maxText), cel.ParserRecursionLimit(50),
	)
})

// Compile reads a rule. Its error is one line in the compiler's words.
func Compile(text string) (*Rule, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, said(issues)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("a rule is true or false, this one is of type %s", ast.OutputType())
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, oneLine(err)
	}
	return &Rule{text: text, program: program}, nil
}

// said is the first thing that the compiler found, and where.
func said(issues *cel.Issues) error {
	first := issues.Errors()[0]
	message, _, _ := strings.Cut(first.Message, "\n")
	if line := first.Location.Line(); line > 1 {
		return fmt.Errorf("%s (line %d, column %d of the rule)", message, line, first.Location.Column()+1)
	}
	return fmt.Errorf("%s (column %d of the rule)", message, first.Location.Column()+1)
}

// Holds reports whether the rule holds. A rule that fails on a request says
// why.
func (r *Rule) Holds(vars Vars) (bool, error) {
	out, _, err := r.program.Eval(activation{vars})
	if err != nil {
		return false, oneLine(err)
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("the rule gave neither true nor false")
	}
	return holds, nil
}

// String is the rule as it was written.
func (r *Rule) String() string { return r.text }

func oneLine(err error) error {
	message, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(message)
}

// activation gives CEL the variables that it asks for.
type activation struct{ vars Vars }

func (a activation) ResolveName(name string) (any, bool) {
	value := a.vars.Var(name)
	if fields, ok := value.(map[string]string); ok {
		return texts{types.NewStringStringMap(types.DefaultTypeAdapter, fields)}, true
	}
	return value, value != nil
}

func (a activation) Parent() cel.Activation { return nil }

// texts is a map in which what is not there is empty.
type texts struct{ traits.Mapper }

func (t texts) Find(key ref.Val) (ref.Val, bool) {
	if value, ok := t.Mapper.Find(key); ok {
		return value, true
	}
	return types.String(""), true
}

func (t texts) Get(key ref.Val) ref.Val {
	value, _ := t.Find(key)
	return value
}
