package upstream

import (
	"encoding/binary"
	"hash/crc32"
)

// eventMessage is a frame as a message of Amazon's event stream: lengths and their
// checksum, headers, payload, and a checksum of it all.
func eventMessage(f frame) []byte {
	var headers []byte
	header := func(name, value string) {
		headers = append(headers, byte(len(name)))
		headers = append(headers, name...)
		headers = append(headers, 7) // a string
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(value)))
		headers = append(headers, value...)
	}
	kind, value := ":event-type", "event"
	if f.failed {
		kind, value = ":exception-type", "exception"
	}
	header(kind, f.event)
	header(":content-type", "application/json")
	header(":message-type", value)
	payload := marshal(f.data)

	const prelude, checksum = 8, 4
	b := binary.BigEndian.AppendUint32(nil, uint32(prelude+checksum+len(headers)+len(payload)+checksum))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, headers...)
	b = append(b, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
