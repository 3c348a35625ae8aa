// Command pastcalls puts records of calls into a data directory that were never
// made, so that pictures of the console show a past. It reads them from its
// input, a list in JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

type call struct {
	At        time.Time
	Key, Team string // their IDs
	Operation string
	Model     string
	Provider  string
	Upstream  string
	Stream    bool
	Status    int
	Error     string
	FirstMs   float64
	TotalMs   float64
	Input     int64
	CacheRead int64
	Output    int64
	Reasoning int64
	Cost      *money.Amount
	Tags      string
	Notes     string
	Steps     []store.Step
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: pastcalls DIRECTORY <CALLS")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	var calls []call
	if err := json.NewDecoder(os.Stdin).Decode(&calls); err != nil {
		return err
	}
	st, err := store.Open(ctx, dir, "")
	if err != nil {
		return err
	}
	defer st.Close()
	var records []store.Call
	for i, c := range calls {
		r := store.Call{
			ID: fmt.Sprintf("%012x7%019x", c.At.UnixMilli(), 0x5ca1ab1e0000+i), KeyID: c.Key, Team: c.Team, Operation: c.Operation, Model: c.Model, Provider: c.Provider,
			UpstreamModel: c.Upstream, Account: c.Provider, Stream: c.Stream, Status: c.Status, Error: c.Error, Started: c.At,
			FirstByte: milliseconds(c.FirstMs), Total: milliseconds(c.TotalMs), BytesIn: 4 * (c.Input + c.CacheRead), BytesOut: 5 * c.Output,
			Usage: llm.Usage{Input: c.Input, CacheRead: c.CacheRead, Output: c.Output, Reasoning: c.Reasoning}, Tags: c.Tags, Notes: c.Notes,
		}
		if len(c.Steps) > 0 {
			r.Steps = store.EncodeSteps(c.Steps)
		}
		if c.Cost != nil {
			r.Priced, r.Cost, r.Charge = true, *c.Cost, *c.Cost
		}
		records = append(records, r)
	}
	return st.AddCalls(ctx, records)
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
