// Styles that only some pages need.
const fetched = /** @type {Map<string, Promise<void>>} */ (new Map());

/** sheet brings a file of styles, named from this folder on, once. It never fails: without it a page is only plainer. @param {string} name */
export function sheet(name) {
  const known = fetched.get(name) ?? new Promise((done) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = new URL(name, import.meta.url).pathname;
    link.onload = link.onerror = () => done(undefined);
    document.head.append(link);
  });
  fetched.set(name, known);
  return known;
}
