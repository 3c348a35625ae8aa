// Who is logged in, and how that ends.
import { call } from './api.js';
import { ago } from './format.js';
import { html, useState } from './html.js';
import { AsCurl, Badge, Card, Dialog, Form, Loaded, Table, Time, say, useGet } from './ui.js';

/** @typedef {import('../types').Session} Session */

const browsers = /** @type {[RegExp, string][]} */ ([
  [/Edg\/(\d+)/, 'Edge'], [/OPR\/(\d+)/, 'Opera'], [/(?:Headless)?Chrome\/(\d+)/, 'Chrome'], [/Firefox\/(\d+)/, 'Firefox'], [/Version\/(\d+).*Safari/, 'Safari'], [/^curl\/([\d.]+)/, 'curl'],
]);
const systems = /** @type {[RegExp, string][]} */ ([[/Android/, 'Android'], [/iPhone|iPad/, 'iOS'], [/Windows/, 'Windows'], [/Mac OS X/, 'macOS'], [/Linux/, 'Linux']]);

/** browser is what a browser calls itself, in short. @param {string} [agent] */
function browser(agent = '') {
  for (const [pattern, name] of browsers) {
    const found = pattern.exec(agent);
    const system = systems.find(([p]) => p.test(agent));
    if (found) return `${name} ${found[1]}${system ? ' on ' + system[1] : ''}`;
  }
  return agent || 'unknown';
}

/** Sessions are those of somebody, or of everybody. @param {{title: string, of?: string}} props */
export function Sessions({ title, of }) {
  const sessions = useGet('/sessions', 10000);
  const [ending, end] = useState(/** @type {Session|null} */ (null));
  const request = { method: 'DELETE', path: '/sessions/' + ending?.id };
  const send = async () => {
    await call(request);
    end(null);
    say('The session has ended.');
    sessions.reload();
  };
  return html`
    <${Card} title=${title}>
      <${Loaded} of=${sessions}>${(/** @type {{sessions: Session[]}} */ { sessions: all }) => html`
        <${Table} label=${title} rows=${all.filter((s) => !of || s.user === of)} id=${(/** @type {Session} */ s) => s.id} columns=${[
          { name: of ? 'Browser' : 'Who', cell: (/** @type {Session} */ s) => html`${of ? browser(s.agent) : s.user} ${s.current && html`<${Badge} tone="good">this one<//>`}<small title=${s.agent}>${of ? '' : browser(s.agent)}</small>` },
          { name: 'From', cell: (/** @type {Session} */ s) => s.from ?? 'this machine' },
          { name: 'Since', cell: (/** @type {Session} */ s) => html`<${Time} at=${s.created} say=${ago(s.created)} />` },
          { name: 'Last seen', cell: (/** @type {Session} */ s) => html`<${Time} at=${s.seen} say=${ago(s.seen)} />` },
          { name: 'Ends', cell: (/** @type {Session} */ s) => html`<${Time} at=${s.ends} say=${ago(s.ends)} />` },
          { name: 'Actions', cell: (/** @type {Session} */ s) => !s.current && html`<div class="row"><button type="button" class="small danger" aria-label=${`End the session of ${s.user}, ${browser(s.agent)}`} onClick=${() => end(s)}>End</button></div>` },
        ]} />`}<//>
      <p class="note">A session ends half an hour after its last use, and twelve hours after its beginning.</p>
      <${AsCurl} of=${{ path: '/sessions' }} />
      ${ending && html`
        <${Dialog} title="End this session?" close=${() => end(null)}>
          <p>${ending.user} in ${browser(ending.agent)} from ${ending.from ?? 'this machine'} is logged out with the next click.</p>
          <${Form} send=${send} label="End the session" tone="danger" request=${() => request} cancel=${() => end(null)} />
        <//>`}
    <//>`;
}
