// Values as a document has them, for people who keep it in a file.

const plain = /^[A-Za-z_/$][\w./$*@-]*( [\w./$*@-]+)*$/;
const words = /^(true|false|null|yes|no|on|off|y|n)$/i;

/** @param {unknown} value */
const scalar = (value) => (typeof value === 'string' && (!plain.test(value) || words.test(value)) ? JSON.stringify(value) : String(value));

/** @param {string} key */
const name = (key) => (plain.test(key) && !words.test(key) ? key : JSON.stringify(key));

/**
 * yaml writes a value as YAML, without an end of line. What is undefined is left out.
 * @param {any} value @param {string} [indent]
 * @returns {string}
 */
export function yaml(value, indent = '') {
  if (Array.isArray(value)) return value.map((v) => `${indent}- ${under(v, indent + '  ')}`).join('\n');
  return Object.entries(value).filter(([, v]) => v !== undefined)
    .map(([k, v]) => (compound(v) ? `${indent}${name(k)}:\n${yaml(v, indent + '  ')}` : `${indent}${name(k)}: ${leaf(v)}`)).join('\n');
}

/** @param {any} v */
const compound = (v) => typeof v === 'object' && v !== null && Object.values(v).some((x) => x !== undefined);

/** @param {any} v */
const leaf = (v) => (typeof v === 'object' && v !== null ? (Array.isArray(v) ? '[]' : '{}') : scalar(v));

/** @param {any} v @param {string} indent */
const under = (v, indent) => (compound(v) ? yaml(v, indent).trimStart() : leaf(v));
