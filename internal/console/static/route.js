// Where the reader is: #/page/rest?name=value.
import { signal } from './html.js';

function read() {
  const [path, search = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(search) };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = signal(read());
addEventListener('hashchange', () => { route.value = read(); });

/** link is the address of a page. @param {string[]} path @param {Record<string, any>} [values] */
export function link(path, values = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) q.set(name, String(value));
  const search = q.toString();
  return '#/' + path.map(encodeURIComponent).join('/') + (search && '?' + search);
}

/** go opens a page. @param {string[]} path @param {Record<string, any>} [values] */
export const go = (path, values) => { location.hash = link(path, values); };

/** setQuery changes parameters of this page's address, without a step in the history. @param {Record<string, any>} values */
export function setQuery(values) {
  const all = { ...Object.fromEntries(route.value.query), ...values };
  history.replaceState(null, '', link(route.value.path, all));
  route.value = read();
}
