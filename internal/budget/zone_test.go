package budget

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "pack the zones of this Go distribution anew")

// distributed are the rules of Go's distribution, by the names of their zones.
func distributed(t *testing.T) map[string][]byte {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("there is no Go here: ", err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skip("this Go has no list of zones: ", err)
	}
	defer archive.Close()
	rules := map[string][]byte{}
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if rules[file.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return rules
}

// pack writes zones with the same rules one after another, where they cost
// next to nothing.
func pack(rules map[string][]byte) []byte {
	names := slices.SortedFunc(maps.Keys(rules), func(a, b string) int {
		return cmp.Or(bytes.Compare(rules[a], rules[b]), strings.Compare(a, b))
	})
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // a level that there is
	for _, name := range names {
		fmt.Fprintf(w, "%s %d\n%s", name, len(rules[name]), rules[name])
	}
	w.Close()
	return out.Bytes()
}

func TestPackedZones(t *testing.T) {
	want := distributed(t)
	if *update {
		if err := os.WriteFile("zones.gz", pack(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := unpacked()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%d zones are packed, this Go has %d or others: run 'go generate ./internal/budget'", len(got), len(want))
	}
}

// Every zone is one, on machines with a list of them and on others.
func TestLocation(t *testing.T) {
	rules, err := unpacked()
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 400 {
		t.Errorf("only %d zones are packed", len(rules))
	}
	for name := range rules {
		for _, find := range []func(string) (*time.Location, error){Location, packedLocation} {
			if zone, err := find(name); err != nil || zone.String() != name {
				t.Errorf("%s: %v, %v", name, zone, err)
			}
		}
	}
	berlin, err := packedLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"2026-01-01T12:00:00Z": "13:00 CET", "2026-07-01T12:00:00Z": "14:00 CEST"} {
		utc, err := time.Parse(time.RFC3339, at)
		if got := utc.In(berlin).Format("15:04 MST"); err != nil || got != want {
			t.Errorf("%s is %s in Berlin, want %s (%v)", at, got, want, err)
		}
	}
	for _, name := range []string{"Local", "Europe/Nowhere", "../Europe/Berlin", "Europe/Berlin ", "Europe"} {
		if _, err := Location(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
	if zone, err := Location(""); err != nil || zone != time.UTC {
		t.Errorf("no name: %v, %v", zone, err)
	}
}
