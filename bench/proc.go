package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// family is the process and its children, which are nginx's workers.
func (p *process) family() ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	family := []int{p.pid()}
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		fields, err := statFields(path)
		if err != nil {
			continue // it has ended
		}
		if fields[1] == strconv.Itoa(p.pid()) { // the parent
			family = append(family, pid)
		}
	}
	return family, nil
}

// statFields are the fields of a stat file from the third on; the second, the name,
// may hold spaces.
func statFields(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return nil, fmt.Errorf("%s is cut short", path)
	}
	return fields, nil
}

// cpu is the time that the process and its children have run, user and system.
func (p *process) cpu() (time.Duration, error) {
	family, err := p.family()
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, pid := range family {
		d, err := cpuOf(pid)
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// cpuOf counts the scheduler's nanoseconds of each thread, or clock ticks of a
// hundredth of a second where the kernel does not keep those. Go and nginx end no
// threads, whose time would be missing.
func cpuOf(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		ns, _, _ := strings.Cut(string(b), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n)
	}
	if sum > 0 {
		return sum, nil
	}
	fields, err := statFields(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	for _, f := range fields[11:13] { // utime, stime
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum, nil
}

// rss is the memory that the process and its children hold, in MB.
func (p *process) rss() (float64, error) {
	family, err := p.family()
	if err != nil {
		return 0, err
	}
	kb := 0
	for _, pid := range family {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, after, ok := strings.Cut(string(b), "VmRSS:")
		if !ok {
			return 0, fmt.Errorf("process %d tells no VmRSS", pid)
		}
		n, err := strconv.Atoi(strings.Fields(after)[0])
		if err != nil {
			return 0, err
		}
		kb += n
	}
	return float64(kb) / 1024, nil
}

// machine is what the figures were taken on.
func machine() string {
	model, cores := "unknown CPU", 0
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.SplitSeq(string(b), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name":
			model = strings.TrimSpace(value)
		case "processor":
			cores++
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d cores, Linux %s", model, cores, strings.TrimSpace(string(kernel)))
}
