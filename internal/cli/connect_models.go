package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// listed is a model as a client sees it. Of servers that say less than Limen,
// only the ID is there.
type listed struct {
	ID           string   `json:"id"`
	Context      int      `json:"context_length"`
	Output       int      `json:"max_output_tokens"`
	Parameters   []string `json:"supported_parameters"`
	Architecture struct {
		Output []string `json:"output_modalities"`
	} `json:"architecture"`
}

// fits tells whether agents can work with the model, as far as is known.
func (m *listed) fits() bool {
	texts := len(m.Architecture.Output) == 0 || slices.Contains(m.Architecture.Output, "text")
	return texts && (len(m.Parameters) == 0 || slices.Contains(m.Parameters, "tools"))
}

// listModels asks for the models that a key may use.
func listModels(ctx context.Context, base, key string) ([]listed, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer from %s: %w", base, err)
	}
	defer resp.Body.Close()
	var out struct {
		Data  []listed `json:"data"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &out)
	switch {
	case resp.StatusCode != http.StatusOK && out.Error.Message != "":
		return nil, fmt.Errorf("%s/models answered %s: %s", base, resp.Status, out.Error.Message)
	case resp.StatusCode != http.StatusOK || err != nil:
		return nil, fmt.Errorf("%s/models answered %s, and no list; is it the base URL of a gateway?", base, resp.Status)
	case len(out.Data) == 0:
		return nil, fmt.Errorf("no model is visible to this key at %s", base)
	}
	return out.Data, nil
}

// choose takes the model that was asked for, or the first that fits.
func (k *connecting) choose(models []listed) (listed, error) {
	for _, m := range models {
		if k.model == m.ID {
			return m, nil
		}
	}
	if k.model != "" {
		return listed{}, usageError("the model %s is not visible to this key; it sees %s", k.model, some(models))
	}
	i := max(0, slices.IndexFunc(models, func(m listed) bool { return m.fits() }))
	if m := models[i]; len(models) == 1 {
		fmt.Fprintf(k.out, "The model is %s.\n", m.ID)
	} else {
		fmt.Fprintf(k.out, "The model is %s; --model takes another of %s.\n", m.ID, some(slices.Delete(slices.Clone(models), i, i+1)))
	}
	return models[i], nil
}

// some names models, not more than fit on a few lines.
func some(models []listed) string {
	const most = 20
	var names []string
	for _, m := range models[:min(most, len(models))] {
		names = append(names, m.ID)
	}
	if more := len(models) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more ('limen models' lists them)", more))
	}
	return strings.Join(names, ", ")
}
