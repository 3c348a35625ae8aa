// How numbers, amounts and times are written.

/**
 * round rounds a decimal's text half up, exactly.
 * @param {string} text @param {number} places
 */
function round(text, places) {
  const [, sign, whole, part = ''] = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text) ?? ['', '', '0', ''];
  const digits = part.padEnd(places + 1, '0');
  let n = BigInt(whole + digits.slice(0, places));
  if (digits[places] >= '5') n++;
  const all = n.toString().padStart(places + 1, '0');
  return sign + all.slice(0, all.length - places) + (places ? '.' + all.slice(all.length - places) : '');
}

const grouped = (/** @type {string} */ text) => text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',');

/**
 * money writes dollars: cents from one dollar on, below that as many places as say something.
 * @param {string|null|undefined} text decimal as the API wrote it; null is not known
 */
export function money(text) {
  if (text === null || text === undefined) return 'unknown';
  const value = String(text);
  const size = Math.abs(Number(value));
  if (size === 0) return '$0';
  const places = size >= 1 ? 2 : Math.min(12, 2 - Math.floor(Math.log10(size)));
  const short = round(value, places);
  return '$' + (size >= 1 ? grouped(short) : short.replace(/0+$/, ''));
}

/** price writes dollars for a million tokens. @param {number|null|undefined} value */
export const price = (value) => (value === null || value === undefined ? 'unknown' : '$' + value);

/** @param {number|undefined} n */
export const count = (n) => (n ?? 0).toLocaleString('en-US');

/** short writes a large number in four characters or so. @param {number} n */
export function short(n) {
  for (const [size, unit] of /** @type {[number, string][]} */ ([[1e9, 'B'], [1e6, 'M'], [1e4, 'k']])) {
    if (n >= size) return (n / (unit === 'k' ? 1e3 : size)).toFixed(n >= size * 100 ? 0 : 1).replace(/\.0$/, '') + unit;
  }
  return count(n);
}

/** @param {number} ms */
export function duration(ms) {
  if (!ms) return '–';
  if (ms < 1) return '<1 ms';
  if (ms < 1000) return Math.round(ms) + ' ms';
  if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 2 : 1) + ' s';
  return Math.floor(ms / 60000) + ' min ' + Math.round(ms % 60000 / 1000) + ' s';
}

/** share of a whole in percent. @param {number} part @param {number} whole */
export function percent(part, whole) {
  if (!whole || !part) return '0 %';
  const p = part / whole * 100;
  return (p < 0.1 ? '<0.1' : p < 10 ? p.toFixed(1).replace(/\.0$/, '') : Math.round(p)) + ' %';
}

const two = (/** @type {number} */ n) => String(n).padStart(2, '0');

/** @param {Date} d */
export const date = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;

/** daysAgo is the date so many days ago. @param {number} n */
export function daysAgo(n) {
  const d = new Date();
  d.setDate(d.getDate() - n);
  return date(d);
}

/** @param {string|undefined} text */
export function time(text) {
  if (!text) return 'never';
  const d = new Date(text);
  return `${date(d)} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

const units = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]]);
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** ago says how long something is away from now. @param {string|undefined} text */
export function ago(text) {
  if (!text) return 'never';
  const seconds = (Date.parse(text) - Date.now()) / 1000;
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? units[5];
  return relative.format(Math.trunc(seconds / size), unit);
}

/** Where the reader is: days are those of their clock. */
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

/** Sums whose cost is not known in part say so. @param {{cost_usd: string, unpriced: number, calls: number}} sum */
export function costOf(sum) {
  if (!sum.unpriced) return money(sum.cost_usd);
  return Number(sum.cost_usd) === 0 ? 'unknown' : '≥ ' + money(sum.cost_usd);
}
