// Preact with templates. What stands in a template is text or an attribute, never markup.
import { h } from './lib/preact.mjs';
import htm from './lib/htm.mjs';

export { render } from './lib/preact.mjs';
export { useEffect, useLayoutEffect, useRef, useState, useMemo } from './lib/hooks.mjs';
export { signal } from './lib/signals.mjs';

const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;

const told = (/** @type {string} */ c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

/**
 * shown tells the characters that cannot be seen, and those that turn the writing round: a name
 * must not look like another one.
 * @param {any} child a text, or whatever else stands in a template
 * @returns {any}
 */
export const shown = (child) => (typeof child === 'string' ? child.replace(hidden, told) : Array.isArray(child) ? child.map(shown) : child);

/**
 * What a template may have in it: so functions within templates know that they are given something.
 * @typedef {((...given: any[]) => any)|{[name: string]: Value}|Value[]|object|string|number|boolean|null|undefined} Value
 */

/** @type {(strings: TemplateStringsArray, ...values: Value[]) => any} */
export const html = htm.bind((type, props, ...children) => h(type, props, ...children.map(shown)));
