package probe

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// modelList is a list of models.
type modelList struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
}

func (v *visit) listModels(ctx context.Context) (verdict, error) {
	a, err := v.get(ctx, "/models")
	if err != nil {
		return verdict{}, err
	}
	if err := a.served("GET /models", []string{"librechat", "openwebui"}); err != nil {
		if absent, ok := err.(*errAbsent); ok && v.Model == "" {
			return verdict{}, &fault{absent.why, "name a model with --model", absent.clients}
		}
		return verdict{}, err
	}
	var list modelList
	found := verdict{faults: a.decode(&list)}
	if len(found.faults) > 0 {
		return found, found.faults[0]
	}
	if len(list.Data) == 0 && v.Model == "" {
		return found, &fault{"no model is visible to this key", "offer the key a model, or name one with --model", everyone}
	}
	if v.Model == "" {
		v.Model = list.Data[0].ID
	}
	found.detail = fmt.Sprintf("%s; the checks use %s", plural(len(list.Data), "model"), v.Model)
	return found, nil
}

func (v *visit) retrieveModel(ctx context.Context) (verdict, error) {
	a, err := v.get(ctx, "/models/"+url.PathEscape(v.Model))
	if err == nil && a.status == http.StatusNotFound && strings.Contains(v.Model, "/") {
		a, err = v.get(ctx, "/models/"+v.Model) // some want the slash as it is
	}
	if err != nil {
		return verdict{}, err
	}
	if a.missing() {
		return verdict{}, &errAbsent{fmt.Sprintf("the server does not tell of one model (HTTP %d)", a.status), "", []string{"openai-js", "openai-python"}}
	}
	if err := a.served("GET /models/{model}", nil); err != nil {
		return verdict{}, err
	}
	var model struct {
		ID string `json:"id"`
	}
	found := verdict{faults: a.decode(&model)}
	if len(found.faults) == 0 && model.ID != v.Model {
		found.faults = append(found.faults, &fault{fmt.Sprintf("asked for %s, got %q", v.Model, model.ID), "answer with the model that was asked for", nil})
	}
	return found, nil
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
