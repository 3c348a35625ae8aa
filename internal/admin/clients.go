package admin

import (
	"github.com/limen-gateway/limen/internal/connect"
	"github.com/limen-gateway/limen/internal/llm"
)

// Client is a program with the settings that make it use this gateway.
type Client struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	File     string   `json:"file"`               // where they belong
	Text     string   `json:"text"`               // a whole file that has them, and nothing else
	Variable string   `json:"variable,omitempty"` // where the client reads the key from; else the file holds it
	ByHand   []string `json:"by_hand,omitempty"`  // what no file can hold
}

// keyPlace stands for the key: it is known to whoever was given it only.
const keyPlace = "LIMEN-KEY"

// ClientList is the answer of GET /api/v1/clients.
type ClientList struct {
	Clients []Client `json:"clients"`
	Key     string   `json:"key_place"` // what stands in the texts where the key belongs
}

// listClients tells the settings of clients for a base URL and a model.
func (a *API) listClients(r *request) (*ClientList, error) {
	if a.Catalog == nil {
		return nil, errNotRunning
	}
	q := r.URL.Query()
	target := connect.Target{Base: q.Get("base"), Model: q.Get("model"), Key: keyPlace}
	if target.Base == "" {
		target.Base = a.LocalURL
	}
	if target.Model == "" {
		return nil, llm.InvalidParam("missing_required_parameter", "model", "model is the model that the client is to use.")
	}
	m, err := a.Catalog.Table().Resolve(nil, target.Model)
	if err != nil {
		return nil, err
	}
	target.Context, target.Output = m.Facts.Context, m.Facts.MaxOutput
	list := []Client{}
	for i := range connect.Clients {
		c := &connect.Clients[i]
		text, err := c.Snippet(target)
		if err != nil {
			return nil, err
		}
		list = append(list, Client{c.Name, c.Title, c.Place(), text, c.Variable, c.ByHand})
	}
	return &ClientList{list, keyPlace}, nil
}
