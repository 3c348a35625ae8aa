package ledger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"net/http"
	"time"

	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

// A record in the journal is
//
//	length  uint32, little endian, of the payload
//	crc     uint32, Castagnoli, of the payload
//	payload version byte, then the fields of store.Call in the order of
//	        appendCall: strings with a length before them, integers as varints
//
// A new field goes to the end under a new version. A hold has a version of its
// own and those fields that appendHold writes.
const (
	headerLen   = 8
	version     = 3
	holdVersion = 128
	maxPayload  = 64 << 10
)

// kind is what a record says.
type kind uint8

const (
	ofCall  kind = iota // a call is over
	ofHold              // a call may come to cost so much, and has begun
	ofMoved             // the same once more: what said it first is to be removed
)

// entry is a record as it is read. Of a hold it has the call that is recorded
// when no other record says how the call ended.
type entry struct {
	call store.Call
	kind kind
}

// interrupted is the code of calls of which nobody knows how they ended.
const interrupted = "interrupted"

// Versions that are read: a former process may have written them.
const (
	withoutSteps = 1 // and what is behind them
	withoutMoney = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn is the end of what was written whole: a crash cut the last record.
var errTorn = errors.New("ledger: record is cut or damaged")

// appendRecord appends a call as one record.
func appendRecord(dst []byte, c *store.Call, of kind) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, headerLen)...)
	if of == ofCall {
		dst = appendCall(dst, c)
	} else {
		dst = appendHold(dst, c, of == ofMoved)
	}
	payload := dst[start+headerLen:]
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(dst[start+4:], crc32.Checksum(payload, castagnoli))
	return dst
}

func appendCall(dst []byte, c *store.Call) []byte {
	dst = append(dst, version)
	for _, s := range [...]string{c.ID, c.KeyID, c.Operation, c.Model, c.Provider, c.UpstreamModel, c.Error, c.Notes} {
		dst = appendText(dst, s)
	}
	var flags uint64
	if c.Priced {
		flags |= flagPriced
	}
	if c.Stream {
		flags |= flagStream
	}
	if c.Usage.Estimated {
		flags |= flagEstimated
	}
	u := &c.Usage
	for _, n := range [...]int64{
		int64(flags), int64(c.Status), c.Started.UnixMilli(), int64(c.FirstByte), int64(c.Total), c.BytesIn, c.BytesOut,
		u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning,
	} {
		dst = binary.AppendVarint(dst, n)
	}
	dst = appendText(dst, c.Account)
	dst = appendText(dst, c.CacheMiss)
	dst = appendText(dst, c.Steps)
	for _, n := range [...]int64{
		u.HourWrite, u.AudioIn, u.AudioOut, u.ImageOut, u.Searches, int64(u.Service), int64(c.Cost), int64(c.Charge),
	} {
		dst = binary.AppendVarint(dst, n)
	}
	dst = appendText(dst, c.Team)
	dst = appendText(dst, c.Tags)
	return appendText(dst, c.Balances)
}

// appendHold appends what has to be known of a call that may not come to its
// end. Its charge is the estimate.
func appendHold(dst []byte, c *store.Call, moved bool) []byte {
	dst = append(dst, holdVersion)
	for _, s := range [...]string{c.ID, c.KeyID, c.Team, c.Operation, c.Model, c.Balances} {
		dst = appendText(dst, s)
	}
	var flags int64
	if moved {
		flags |= flagMoved
	}
	for _, n := range [...]int64{flags, c.Started.UnixMilli(), int64(c.Charge)} {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

const (
	flagStream = 1 << iota
	flagEstimated
	flagPriced
)

// flagMoved is a flag of holds.
const flagMoved = 1

// readRecord takes the first record of data. It returns errTorn when that is
// not whole.
func readRecord(data []byte, known names) (e entry, rest []byte, err error) {
	if len(data) < headerLen {
		return e, nil, errTorn
	}
	n := binary.LittleEndian.Uint32(data)
	sum := binary.LittleEndian.Uint32(data[4:])
	if n == 0 || n > maxPayload || int(n) > len(data)-headerLen {
		return e, nil, errTorn
	}
	payload, rest := data[headerLen:headerLen+n], data[headerLen+n:]
	if crc32.Checksum(payload, castagnoli) != sum {
		return e, nil, errTorn
	}
	if payload[0] == holdVersion {
		e, err = decodeHold(payload, known)
		return e, rest, err
	}
	e.call, err = decodeCall(payload, known)
	return e, rest, err
}

func decodeHold(payload []byte, known names) (e entry, err error) {
	r := reader{data: payload[1:]}
	c := &e.call
	c.ID = string(r.bytes())
	for _, s := range [...]*string{&c.KeyID, &c.Team, &c.Operation, &c.Model, &c.Balances} {
		*s = known.get(r.bytes())
	}
	flags, started, estimate := r.varint(), r.varint(), r.varint()
	if r.failed {
		return e, errTorn
	}
	c.Started, c.Charge = time.UnixMilli(started), money.Amount(estimate)
	c.Status, c.Error, c.Usage.Estimated = http.StatusInternalServerError, interrupted, true
	e.kind = ofHold
	if flags&flagMoved != 0 {
		e.kind = ofMoved
	}
	return e, nil
}

func decodeCall(payload []byte, known names) (c store.Call, err error) {
	r := reader{data: payload}
	written := r.byte()
	if written < withoutSteps || written > version {
		return c, errors.New("ledger: the journal was written by a newer release; use that release to drain it")
	}
	c.ID = string(r.bytes())
	for _, s := range [...]*string{&c.KeyID, &c.Operation, &c.Model, &c.Provider, &c.UpstreamModel, &c.Error, &c.Notes} {
		*s = known.get(r.bytes())
	}
	var flags, status, started, firstByte, total int64
	u := &c.Usage
	for _, n := range [...]*int64{
		&flags, &status, &started, &firstByte, &total, &c.BytesIn, &c.BytesOut,
		&u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning,
	} {
		*n = r.varint()
	}
	c.Stream, u.Estimated = flags&flagStream != 0, flags&flagEstimated != 0
	c.Status, c.Started = int(status), time.UnixMilli(started)
	c.FirstByte, c.Total = time.Duration(firstByte), time.Duration(total)
	if written > withoutSteps {
		c.Account, c.CacheMiss, c.Steps = known.get(r.bytes()), string(r.bytes()), string(r.bytes())
	}
	if written > withoutMoney {
		var service, cost, charge int64
		for _, n := range [...]*int64{&u.HourWrite, &u.AudioIn, &u.AudioOut, &u.ImageOut, &u.Searches, &service, &cost, &charge} {
			*n = r.varint()
		}
		u.Service, c.Priced = llm.Service(service), flags&flagPriced != 0
		c.Cost, c.Charge = money.Amount(cost), money.Amount(charge)
		c.Team, c.Tags, c.Balances = known.get(r.bytes()), known.get(r.bytes()), known.get(r.bytes())
	}
	if r.failed {
		return c, errTorn
	}
	return c, nil
}

// reader takes a payload apart; once it failed it returns zeros.
type reader struct {
	data   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.data) {
		r.failed = true
		return nil
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) byte() byte {
	b := r.take(1)
	if r.failed {
		return 0
	}
	return b[0]
}

func (r *reader) bytes() []byte {
	n, size := binary.Uvarint(r.data)
	if size <= 0 || n > math.MaxInt32 {
		r.failed = true
		return nil
	}
	r.take(size)
	return r.take(int(n))
}

// names are strings that many records have in common.
type names map[string]string

// maxNames bounds names: clients choose some of them.
const maxNames = 1000

func (n names) get(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(n) < maxNames {
		n[s] = s
	}
	return s
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.data)
	r.take(max(size, 0))
	r.failed = r.failed || size <= 0
	return n
}
