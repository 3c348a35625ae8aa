package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limen-gateway/limen/internal/admin"
	"github.com/limen-gateway/limen/internal/provider"
	"github.com/limen-gateway/limen/internal/provider/modelsdev"
)

func (e *env) modelsRefresh() *cobra.Command {
	var (
		from string
		undo bool
	)
	c := &cobra.Command{
		Use:   "refresh",
		Short: "Fetch newer facts and prices of models, and ask all providers for their lists",
		Long: `Refresh brings facts about models that are newer than this release: limits, abilities,
prices. They are fetched from models.dev, by this command and never by itself, and only of
vendors that the release knows. A running gateway uses them at once, others on the same
database with their next refresh of lists. They stay until --undo, or until a release brings
later ones. A running gateway also asks its providers for their lists.`,
		Example: `  limen models refresh
  limen models refresh --from ./api.json     # where models.dev cannot be reached
  limen models refresh --undo                # back to what the release knows`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in := admin.Refresh{Undo: undo}
			if undo && c.Flags().Changed("from") {
				return usageError("--undo takes no --from")
			}
			if !undo {
				var err error
				if in.Facts, err = e.fetchFacts(c.Context(), from); err != nil {
					return err
				}
			}
			return e.with(c.Context(), func(api *client) error {
				var out admin.Refreshed
				if err := api.do(c.Context(), "POST", "/refresh", in, &out); err != nil {
					return err
				}
				return e.print(out, func(w io.Writer) { printRefreshed(w, out, undo) })
			})
		},
	}
	c.Flags().StringVar(&from, "from", modelsdev.URL, "`URL|FILE` of the list: models.dev's api.json, or its models as JSON Lines")
	c.Flags().BoolVar(&undo, "undo", false, "go back to the facts of the release")
	return c
}

func printRefreshed(w io.Writer, r admin.Refreshed, undo bool) {
	whose := ""
	if undo {
		whose = ", of this release"
	}
	fmt.Fprintf(w, "Facts about %d models from %s, %s%s.\n", r.Models, r.Source, r.Date, whose)
	fmt.Fprintf(w, "%d new, %d gone, %d changed, %d with other prices.\n\n", r.New, r.Gone, r.Changed, r.Prices)
	if len(r.Providers) == 0 {
		fmt.Fprintln(w, "No gateway runs here; the next one uses them.")
		return
	}
	printStates(w, r.Providers)
}

// fetchFacts reads a list and packs what is in it of vendors that the release
// knows.
func (e *env) fetchFacts(ctx context.Context, from string) ([]byte, error) {
	source, open := filepath.Base(from), openFile
	if strings.Contains(from, "://") {
		source, open = withoutSecrets(from), e.download
	}
	list, date, err := open(ctx, from)
	if err != nil {
		return nil, unusable(source, err)
	}
	defer list.Close()
	rows, _, err := modelsdev.Read(list)
	if err != nil {
		return nil, unusable(source, err)
	}
	known := provider.Embedded()
	rows = slices.DeleteFunc(rows, func(r provider.Row) bool { return !known.Has(r.Vendor) })
	return provider.PackFacts(provider.Origin{Source: source, Date: date.UTC().Format(time.DateOnly)}, rows)
}

// withoutSecrets is a URL as it may be shown and kept.
func withoutSecrets(address string) string {
	if address == modelsdev.URL {
		return "models.dev"
	}
	u, err := url.Parse(address)
	if err != nil {
		return "--from"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// unusable says what to do about a list that cannot be had or read.
func unusable(source string, err error) error {
	return fmt.Errorf("%s cannot be used: %w. Nothing was changed.\nTry again, or fetch %s with a browser and name the file with --from", source, err, modelsdev.URL)
}

// openFile opens a list that is as old as its file.
func openFile(_ context.Context, path string) (io.ReadCloser, time.Time, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}, errors.Unwrap(err) // without the path
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, time.Time{}, err
	}
	return f, info.ModTime(), nil
}

// downloadTimeout bounds a download as a whole.
const downloadTimeout = 30 * time.Second

// download fetches a list, which is of today.
func (e *env) download(ctx context.Context, address string) (io.ReadCloser, time.Time, error) {
	now := time.Now()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, now, errors.New("it is no http or https URL")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, now, err
	}
	req.Header.Set("User-Agent", "limen/"+e.version.Release)
	resp, err := (&http.Client{Timeout: downloadTimeout}).Do(req)
	if err != nil {
		return nil, now, errors.Unwrap(err) // without the URL
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, now, fmt.Errorf("it answered %s", resp.Status)
	}
	return resp.Body, now, nil
}
