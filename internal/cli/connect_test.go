package cli

import (
	"testing"

	"github.com/limen-gateway/limen/internal/connect"
	"github.com/limen-gateway/limen/internal/probe"
)

// TestClientsAreProven wants the requests of every client that can be set up.
func TestClientsAreProven(t *testing.T) {
	for _, c := range connect.Clients {
		if _, err := probe.ClientNamed(c.Name); err != nil {
			t.Error(err)
		}
	}
}
