package dialect

import (
	"strings"

	"github.com/limen-gateway/limen/internal/jsonedit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
)

// Cost works out what a call costs that used so much. It is nil where nobody
// asked to be told.
type Cost func(llm.Usage) (cost money.Amount, known bool)

const costMember = "cost"

var costFields = jsonedit.NewFields(costMember)

// In returns a usage object with the cost of that usage in it. It is not known
// where the usage is not the upstream's own.
func (c Cost) In(object []byte, u llm.Usage, known bool) []byte {
	if c == nil || jsonedit.KindOf(object) != jsonedit.KindObject {
		return object
	}
	var o jsonedit.Object
	if jsonedit.Scan(object, costFields, &o) != nil {
		return object
	}
	return jsonedit.Edited(object, &o, jsonedit.Set(0, c.dollars(u, known)))
}

// Write writes the cost as a member of the usage object that is being written.
func (c Cost) Write(w *jsonedit.Writer, u llm.Usage, known bool) {
	if c != nil {
		w.SetRaw(costMember, c.dollars(u, known))
	}
}

// dollars is the cost as a number, or null.
func (c Cost) dollars(u llm.Usage, known bool) []byte {
	if known {
		if cost, ok := c(u); ok {
			return []byte(cost.String())
		}
	}
	return []byte("null")
}

// services are the words of vendors for the kinds of service. What has the
// usual price is Standard.
var services = map[string]llm.Service{
	"": llm.Standard, "auto": llm.Standard, "default": llm.Standard, "standard": llm.Standard, "on_demand": llm.Standard, "unspecified": llm.Standard,
	"flex":     llm.Flex,
	"priority": llm.Priority, "fast": llm.Priority,
	"batch": llm.Batch,
}

// ServiceOf reads a vendor's word for the kind of service that it gave. One
// that is not known is Other: nobody knows what it costs.
func ServiceOf(word llm.Raw) llm.Service {
	s, known := services[strings.ToLower(word.Text())]
	if !known {
		return llm.Other
	}
	return s
}

// dollarPlaces are the decimal places from dollars to nano-dollars.
const dollarPlaces = 9

// Dollars reads an amount in dollars, to the nearest nano-dollar; 0 for what is
// none.
func Dollars(value llm.Raw) money.Amount { return amount(value, dollarPlaces) }

// Ticks reads an amount in units of ten to the minus ten dollars.
func Ticks(value llm.Raw) money.Amount { return amount(value, -1) }

func amount(value llm.Raw, places int) money.Amount {
	text := string(value)
	if value.IsText() {
		text = value.Text()
	}
	n, _ := money.Scaled(text, places)
	return money.Amount(n)
}

// Stated reads the cost that a usage object states in dollars: as a number, or
// as the total of an object. Where the upstream was paid by the owner of a key
// of its vendor, what that took is beside it.
func Stated(usage llm.Raw) money.Amount {
	var cost, details llm.Raw
	own := false
	for name, value := range jsonedit.Members(usage) {
		switch string(name) {
		case `"cost"`:
			cost = value
		case `"cost_details"`:
			details = value
		case `"is_byok"`:
			own = string(value) == "true"
		}
	}
	if cost.Kind() == jsonedit.KindObject {
		if currency := Text(cost, "currency"); currency != "" && currency != "USD" {
			return 0
		}
		cost = Member(cost, "total_cost")
	}
	stated := Dollars(cost)
	if own {
		stated = stated.Plus(Dollars(Member(details, "upstream_inference_cost")))
	}
	return stated
}
