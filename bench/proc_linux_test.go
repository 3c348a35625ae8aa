package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// The CPU of this process grows by what it burns, by the kernel's other count of it:
// a clock on the wall says nothing on a busy machine.
func TestCPUOf(t *testing.T) {
	outer := burned(t)
	before, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	inner := burned(t)
	for burned(t)-inner < 200*time.Millisecond {
	}
	inner = burned(t) - inner
	after, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	outer = burned(t) - outer
	// Either count may lag by what the kernel has not yet added up of each thread.
	const lag = 100 * time.Millisecond
	if got := after - before; got < inner-lag || got > outer+lag {
		t.Errorf("got %v, want %v to %v", got, inner, outer)
	}
}

func burned(t *testing.T) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
