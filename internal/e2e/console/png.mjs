// Pictures of flat colours, made small: 256 colours at most, packed as tightly as zlib can.

import { deflateSync, inflateSync } from 'node:zlib';

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** smaller is a picture of 8 bits a channel with the commonest of its colours, others being the nearest of these. @param {Buffer} png */
export function smaller(png) {
  const { width, height, size, pixels } = decode(png);
  const counts = new Map();
  const colourAt = (i) => (pixels[i] & 0xfc) << 16 | (pixels[i + 1] & 0xfc) << 8 | pixels[i + 2] & 0xfc;
  const exact = new Map(); // the most common colour of those that are taken for one
  for (let i = 0; i < pixels.length; i += size) {
    const colour = colourAt(i);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
    if (!exact.has(colour)) exact.set(colour, [pixels[i], pixels[i + 1], pixels[i + 2]]);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => exact.get(colour));
  const nearest = new Map();
  const indexOf = (colour) => {
    if (!nearest.has(colour)) {
      const [r, g, b] = exact.get(colour);
      const distance = ([x, y, z]) => (x - r) ** 2 + (y - g) ** 2 + (z - b) ** 2;
      nearest.set(colour, palette.reduce((best, p, i) => (distance(p) < distance(palette[best]) ? i : best), 0));
    }
    return nearest.get(colour);
  };
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = indexOf(colourAt((y * width + x) * size));
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([signature, chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flat())), chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

/** decode undoes the filters of a picture's rows. @param {Buffer} png */
function decode(png) {
  const width = png.readUInt32BE(16), height = png.readUInt32BE(20), size = png[25] === 6 ? 4 : 3;
  const parts = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const raw = inflateSync(Buffer.concat(parts)), row = width * size, pixels = Buffer.alloc(row * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (row + 1)];
    for (let x = 0; x < row; x++) {
      const left = x < size ? 0 : pixels[y * row + x - size], up = y ? pixels[(y - 1) * row + x] : 0, corner = y && x >= size ? pixels[(y - 1) * row + x - size] : 0;
      pixels[y * row + x] = raw[y * (row + 1) + 1 + x] + [0, left, up, left + up >> 1, filter === 4 ? paeth(left, up, corner) : 0][filter];
    }
  }
  return { width, height, size, pixels };
}

function paeth(left, up, corner) {
  const p = left + up - corner, a = Math.abs(p - left), b = Math.abs(p - up), c = Math.abs(p - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]), out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(checksum(body), body.length + 4);
  return out;
}

/** checksum is that of PNG, CRC-32. */
function checksum(bytes) {
  let crc = ~0;
  for (const b of bytes) {
    crc ^= b;
    for (let i = 0; i < 8; i++) crc = crc & 1 ? crc >>> 1 ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}
