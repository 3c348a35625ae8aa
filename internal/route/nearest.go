package route

import (
	"cmp"
	"slices"
	"strings"

	"github.com/limen-gateway/limen/internal/spelling"
)

// maxCompared bounds the part of a client's model name that is compared.
const maxCompared = 64

// nearest returns up to three models whose IDs look most like id.
func nearest(models []*Model, id string) []string {
	id = id[:min(len(id), maxCompared)]
	type scored struct {
		id    string
		score int
	}
	list := make([]scored, len(models))
	for i, m := range models {
		list[i] = scored{m.ID, unlikeness(strings.ToLower(id), strings.ToLower(m.ID))}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	var names []string
	for _, s := range list[:min(3, len(list))] {
		names = append(names, s.id)
	}
	return names
}

// unlikeness is the edit distance to the whole ID or to what follows its
// provider, whichever is smaller; an ID that contains the name is near.
func unlikeness(name, id string) int {
	d := spelling.Distance(name, id)
	if _, model, ok := strings.Cut(id, "/"); ok {
		d = min(d, spelling.Distance(name, model)+1)
	}
	if name != "" && strings.Contains(id, name) {
		d = min(d, 2)
	}
	return d
}

func suggestion(names []string) string {
	return "The nearest that you can use: " + strings.Join(names, ", ") + ". GET /v1/models lists all."
}
