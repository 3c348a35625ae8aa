// Preact with templates. What stands in a template is text or an attribute, never markup.
import { h } from './lib/preact.mjs';
import htm from './lib/htm.mjs';

export { render } from './lib/preact.mjs';
export { useEffect, useLayoutEffect, useRef, useState, useMemo } from './lib/hooks.mjs';
export { signal } from './lib/signals.mjs';

/**
 * What a template may have in it: so functions within templates know that they are given something.
 * @typedef {((...given: any[]) => any)|{[name: string]: Value}|Value[]|object|string|number|boolean|null|undefined} Value
 */

/** @type {(strings: TemplateStringsArray, ...values: Value[]) => any} */
export const html = htm.bind(h);
