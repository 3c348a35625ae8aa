package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/limen-gateway/limen/internal/provider"
)

const (
	maxList  = 16 << 20 // bytes of a page of a model list
	maxPages = 10
)

// Refusal is the status of an answer that is no list.
type Refusal int

func (r Refusal) Error() string { return fmt.Sprintf("GET /models answered %d", int(r)) }

// Models asks for the models that the upstream offers. Of one that has no list,
// they are those that facts know.
func (u *Upstream) Models(ctx context.Context, facts *provider.Facts) ([]provider.Model, error) {
	if u.listing.Path == "" {
		return facts.Known(u.Vendor), nil
	}
	var pages [][]provider.Model
	for path := u.listing.Path; ; {
		body, err := u.get(ctx, path)
		if err != nil {
			return nil, err
		}
		page, err := provider.DecodeModels(body)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
		next := ""
		if u.listing.Next != "" {
			next = provider.NextPage(body)
		}
		if next == "" || len(pages) == maxPages {
			return provider.Join(pages...), nil
		}
		path = u.listing.Path + "&" + u.listing.Next + "=" + url.QueryEscape(next)
	}
}

// get reads one page of a list.
func (u *Upstream) get(ctx context.Context, path string) ([]byte, error) {
	header := u.json
	if name := u.listing.Header[0]; u.sign != nil || name != "" {
		if header = header.Clone(); name != "" && header[name] == nil {
			header[name] = []string{u.listing.Header[1]}
		}
	}
	resp, err := u.bare(ctx, http.MethodGet, path, header)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, Refusal(resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxList {
		return nil, fmt.Errorf("GET /models answered more than %d bytes", maxList)
	}
	return body, nil
}
