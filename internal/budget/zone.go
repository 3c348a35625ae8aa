package budget

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

//go:generate go test -run ^TestPackedZones$ -update

// packed are the rules of all zones as Go's distribution has them, for machines
// that have no list: gzip over "NAME LENGTH\n" and the rules, one after another.
// time/tzdata has the same at four times the size.
//
//go:embed zones.gz
var packed []byte

// Location is a zone by its IANA name; "" is UTC. The machine's own zone is
// none: replicas may differ in it.
func Location(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("the machine's own zone")
	}
	if zone, err := time.LoadLocation(name); err == nil {
		return zone, nil
	}
	return packedLocation(name)
}

// packedLocation is a zone by what is packed.
func packedLocation(name string) (*time.Location, error) {
	rules, err := unpacked()
	if err != nil {
		return nil, err
	}
	data, ok := rules[name]
	if !ok {
		return nil, fmt.Errorf("there is no time zone %q", name)
	}
	return time.LoadLocationFromTZData(name, data)
}

// unpacked are the rules by the names of their zones. They take 0.4 MB, where
// somebody asks for a zone that the machine has not.
var unpacked = sync.OnceValues(func() (map[string][]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return readZones(bufio.NewReader(plain))
})

// readZones reads all rules.
func readZones(r *bufio.Reader) (map[string][]byte, error) {
	rules := map[string][]byte{}
	for {
		var name string
		var length int
		switch _, err := fmt.Fscanf(r, "%s %d\n", &name, &length); {
		case errors.Is(err, io.EOF):
			return rules, nil
		case err != nil:
			return nil, err
		}
		data := make([]byte, length)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, err
		}
		rules[name] = data
	}
}
