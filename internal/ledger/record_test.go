package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/store"
)

// calls are records that use the fields in all ways.
func calls() []store.Call {
	return []store.Call{
		{Started: time.UnixMilli(0)},
		{
			ID: "019350000000", KeyID: "k", Operation: "chat", Model: "a/é\x00\"", Provider: "p", UpstreamModel: "m", Stream: true, Status: 502,
			Error: "upstream", Started: time.UnixMilli(1732000000123), FirstByte: 1, Total: math.MaxInt64, BytesIn: 3, BytesOut: 1 << 62,
			Usage: llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5, Estimated: true}, Notes: "drop:seed",
			Account: "p#2", Steps: `[{"target":"p/m"}]`, CacheMiss: "the prompt differs from byte 7 on",
		},
		{
			Started: time.UnixMilli(0), Usage: llm.Usage{HourWrite: 1, AudioIn: 2, AudioOut: 3, ImageOut: 4, Searches: 5, Service: llm.Priority},
			Team: "t", Priced: true, Cost: 1, Charge: math.MaxInt64, Tags: "a=b\nc=d", Balances: "k total 0",
		},
		{ID: strings.Repeat("x", 10_000), Stream: true, Started: time.UnixMilli(-1), Status: -1, BytesIn: math.MinInt64},
		{Started: time.UnixMilli(0), Usage: llm.Usage{Estimated: true}},
	}
}

func TestRecordRoundTrip(t *testing.T) {
	var all []byte
	for _, want := range calls() {
		record := appendRecord(nil, &want, ofCall)
		all = append(all, record...)
		got, rest, err := readRecord(append(record, "rest"...), names{})
		if got.call != want || got.kind != ofCall || string(rest) != "rest" || err != nil {
			t.Errorf("got  %+v, %q, %v\nwant %+v", got, rest, err, want)
		}
	}
	for i, want := range calls() {
		var got entry
		var err error
		if got, all, err = readRecord(all, names{}); got.call != want || err != nil {
			t.Errorf("record %d of several: got %+v, %v", i, got, err)
		}
	}
	if len(all) != 0 {
		t.Errorf("%d bytes are left", len(all))
	}
}

// A record that is cut at any byte, or has any bit turned, is no record.
func TestRecordDamaged(t *testing.T) {
	record := appendRecord(nil, &calls()[1], ofCall)
	for n := range record {
		if _, _, err := readRecord(record[:n], names{}); !errors.Is(err, errTorn) {
			t.Errorf("cut at %d: got %v, want errTorn", n, err)
		}
		for bit := range 8 {
			damaged := bytes.Clone(record)
			damaged[n] ^= 1 << bit
			if _, _, err := readRecord(damaged, names{}); !errors.Is(err, errTorn) {
				t.Errorf("bit %d of byte %d turned: got %v, want errTorn", bit, n, err)
			}
		}
	}
}

// After a power loss a file can end in zeros: the disk knew of its length, not
// yet of its content.
func TestRecordOfZeros(t *testing.T) {
	for _, n := range []int{0, 1, headerLen, headerLen + 1, 4096} {
		if c, _, err := readRecord(make([]byte, n), names{}); !errors.Is(err, errTorn) {
			t.Errorf("%d zeros: got %+v, %v, want errTorn", n, c, err)
		}
	}
}

// withHeader makes a whole record of a payload.
func withHeader(payload []byte) []byte {
	record := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	record = binary.LittleEndian.AppendUint32(record, crc32.Checksum(payload, castagnoli))
	return append(record, payload...)
}

func TestRecordOfANewerRelease(t *testing.T) {
	_, _, err := readRecord(withHeader([]byte{version + 1, 1, 2, 3}), names{})
	if err == nil || errors.Is(err, errTorn) || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("got %v, want an error about a newer release", err)
	}
}

// Journals that former releases wrote are read on.
func TestRecordOfFormerReleases(t *testing.T) {
	want := calls()[1]
	record := appendRecord(nil, &want, ofCall)
	money := len(record) - 8 - 3 // eight numbers and three texts, all nothing
	tail := len(appendText(appendText(appendText(nil, want.Account), want.CacheMiss), want.Steps))
	for written, end := range map[byte]int{withoutMoney: money, withoutSteps: money - tail} {
		payload := bytes.Clone(record[headerLen:end])
		payload[0] = written
		want := want
		if written == withoutSteps {
			want.Account, want.CacheMiss, want.Steps = "", "", ""
		}
		got, rest, err := readRecord(withHeader(payload), names{})
		if got.call != want || len(rest) != 0 || err != nil {
			t.Errorf("version %d: got  %+v, %q, %v\nwant %+v", written, got, rest, err, want)
		}
	}
}

func FuzzReadRecord(f *testing.F) {
	for _, c := range calls() {
		record := appendRecord(nil, &c, ofCall)
		f.Add(record, false)
		f.Add(record[:len(record)-1], false)
		f.Add(record[headerLen:], true)
		f.Add(appendRecord(nil, &c, ofHold), false)
		f.Add(appendRecord(nil, &c, ofMoved)[headerLen:], true)
	}
	f.Add([]byte{version, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, true)
	f.Add([]byte{version}, true)
	f.Fuzz(func(t *testing.T, data []byte, framed bool) {
		if framed { // past the checksum, which no random bytes pass
			data = withHeader(data)
		}
		c, rest, err := readRecord(data, names{})
		if err != nil {
			return
		}
		if len(data)-len(rest) < headerLen || !bytes.HasSuffix(data, rest) {
			t.Errorf("%d of %d bytes are left", len(rest), len(data))
		}
		again, rest, err := readRecord(appendRecord(nil, &c.call, c.kind), names{})
		if len(appendRecord(nil, &c.call, c.kind)) > headerLen+maxPayload {
			return
		}
		if again != c || len(rest) != 0 || err != nil {
			t.Errorf("read %+v\nthen %+v, %v", c, again, err)
		}
	})
}
