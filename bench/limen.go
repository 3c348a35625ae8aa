package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// limen is the binary that is measured, and all that the bench knows of its command
// line.
type limen struct {
	path     string
	addr     string
	upstream string // its address
	data     string
	config   string
	log      string
	key      string
}

// ample is more calls at once than any section but that of overload makes.
const ample = 8192

const limenConf = `listen: %s
data: %s
limits: { concurrency: %d }
providers:
  lab: { base_url: http://%s/v1, api_key: secret, speaks: [openai-chat, openai-responses] }
  other: { base_url: http://%s/v1, api_key: secret, speaks: [anthropic] }
models:
  fast: { targets: [lab/small] }
  far: { targets: [other/small] }
`

// newLimen builds the binary as it is released, unless there is one at path, and
// makes a key.
func newLimen(ctx context.Context, path, dir, addr, upstream string) (*limen, error) {
	l := &limen{
		path:     path,
		addr:     addr,
		upstream: upstream,
		data:     filepath.Join(dir, "data"),
		config:   filepath.Join(dir, "limen.yaml"),
		log:      filepath.Join(dir, "limen.log"),
	}
	if path == "" {
		l.path = filepath.Join(dir, "limen")
		fmt.Println("building limen")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", l.path, "github.com/limen-gateway/limen")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building limen: %w\n%s", err, out)
		}
	}
	if err := os.Mkdir(l.data, 0o700); err != nil {
		return nil, err
	}
	if err := l.configure(ample); err != nil {
		return nil, err
	}
	return l, l.createKey(ctx)
}

// configure writes the configuration of the next start, with so many calls at once.
func (l *limen) configure(concurrency int) error {
	return os.WriteFile(l.config, fmt.Appendf(nil, limenConf, l.addr, l.data, concurrency, l.upstream, l.upstream), 0o600)
}

func (l *limen) start(ctx context.Context) (*process, error) {
	return spawn(ctx, l.log, l.path, "serve", "--config", l.config)
}

// createKey sets the key that the bench calls with.
func (l *limen) createKey(ctx context.Context) error {
	var made struct {
		Key string `json:"key"`
	}
	if err := l.ask(ctx, &made, "keys", "create", "bench", "--json", "--data", l.data); err != nil {
		return err
	}
	if made.Key == "" {
		return errors.New("limen keys create printed no key")
	}
	l.key = made.Key
	return nil
}

// recordedCalls is how many calls Limen has a usage record of.
func (l *limen) recordedCalls(ctx context.Context) (int64, error) {
	var used struct {
		Calls *int64 `json:"calls"`
	}
	if err := l.ask(ctx, &used, "usage", "--json", "--data", l.data); err != nil {
		return 0, err
	}
	if used.Calls == nil {
		return 0, errors.New("limen usage printed no calls")
	}
	return *used.Calls, nil
}

// size is that of the binary in bytes.
func (l *limen) size() (int64, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// ask runs a command and reads the JSON that it prints.
func (l *limen) ask(ctx context.Context, into any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, l.path, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("limen %s: %w\n%s", args[0], err, exit.Stderr)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("limen %s printed %.200q: %w", args[0], out, err)
	}
	return nil
}
