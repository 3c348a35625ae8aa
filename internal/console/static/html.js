// Preact with templates. What stands in a template is text or an attribute, never markup.
import { h } from './lib/preact.mjs';
import htm from './lib/htm.mjs';

export { render } from './lib/preact.mjs';
export { useEffect, useRef, useState, useMemo } from './lib/hooks.mjs';
export { signal } from './lib/signals.mjs';
export const html = htm.bind(h);
