// The admin API, as any client speaks it.
import { signal } from './html.js';

/**
 * @typedef {import('../types').Person} User
 * @typedef {import('../types').Problem} Fault of a document
 * @typedef {{method?: string, path: string, body?: object}} Request one of the admin API, path from /api/v1 on
 */

/** Who is logged in; null when nobody is. */
export const user = signal(/** @type {User|null} */ (null));

/** Whether the one who is logged in may change things. */
export const mayChange = () => user.value?.role === 'owner' || user.value?.role === 'admin';

/** Whether they see more than what belongs to their team. */
export const seesAll = () => user.value?.role !== 'member';

/** Whether they may say who may use the console. */
export const mayAppoint = () => user.value?.role === 'owner';

export class APIError extends Error {
  /** @param {number} status @param {string} message @param {{code?: string, problems?: Fault[]}} [more] */
  constructor(status, message, more = {}) {
    super(message);
    this.status = status;
    this.code = more.code;
    this.problems = more.problems ?? [];
  }
}

// Amounts stay the text that the gateway wrote: a float would change them.
const amounts = /"(cost_usd|charge_usd|amount|spent|held|left|was|is)":(-?[0-9.]+)/g;

/** @param {string} text @returns {any} */
export const parse = (text) => JSON.parse(text.replace(amounts, '"$1":"$2"'));

/**
 * call asks the admin API. A member whose name is that of an amount is a text.
 * @param {Request} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function call({ method = 'GET', path, body }, signal) {
  let answer;
  try {
    answer = await fetch('/api/v1' + path, {
      method, signal, credentials: 'same-origin', cache: 'no-store',
      headers: body ? { 'Content-Type': 'application/json' } : {},
      body: body && JSON.stringify(body),
    });
  } catch (err) {
    if (err instanceof DOMException) throw err;
    throw new APIError(0, 'The gateway does not answer. Is it running?');
  }
  const text = await answer.text();
  if (answer.ok) return text ? parse(text) : null;
  if (answer.status === 401 && path !== '/session') user.value = null;
  const error = errorOf(text);
  throw new APIError(answer.status, error.message || `The gateway answered ${answer.status}.`, error);
}

/** @param {string} text @returns {{message?: string, code?: string, problems?: Fault[]}} */
function errorOf(text) {
  try {
    return JSON.parse(text).error ?? {};
  } catch {
    return {};
  }
}

/**
 * get asks for what is at a path; what that is, is known where the path is written in one piece.
 * @template {string} Path
 * @param {Path} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<import('../types').Answer<Path>>}
 */
export const get = (path, signal) => call({ path }, signal);

/** query writes parameters, without those that are empty. @param {Record<string, any>} values @returns {''|`?${string}`} */
export function query(values) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) q.set(name, String(value));
  const text = q.toString();
  return text ? `?${text}` : '';
}

const quote = (/** @type {string} */ text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** curl is a request as people can send it from a shell. @param {Request} request */
export function curl({ method = 'GET', path, body }) {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}${quote(location.origin + '/api/v1' + path)}`, `-H "Authorization: Bearer $LIMEN_ADMIN"`];
  if (body) lines.push(`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body))}`);
  return lines.join(' \\\n  ');
}

/** Secrets of keys that were made in this tab, by ID: kept in memory, for pages that can use them. @type {Map<string, string>} */
export const secrets = new Map();
