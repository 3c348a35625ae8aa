package repeat

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestEvery(t *testing.T) {
	away := errors.New("away")
	tests := []struct {
		name string
		give []error // of each time; the context ends in the last
		want []error // that are told
	}{
		{"well", []error{nil, nil, nil}, nil},
		{"told once", []error{away, away, away, nil}, []error{away}},
		{"told that it is over", []error{nil, away, nil, nil, away, nil}, []error{away, nil, away}},
		{"the end is no failure", []error{nil, away}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var told []error
				began, times := time.Now(), 0
				Every(ctx, time.Second, func(context.Context) error {
					times++
					if times == len(test.give) {
						cancel()
					}
					return test.give[times-1]
				}, func(err error) { told = append(told, err) })
				if !slices.Equal(told, test.want) {
					t.Errorf("told %v, want %v", told, test.want)
				}
				if took := time.Since(began); took != time.Duration(len(test.give))*time.Second {
					t.Errorf("it took %v for %d times", took, len(test.give))
				}
			})
		})
	}
}
