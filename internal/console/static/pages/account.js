// My account: who I am here, my password and my sessions.
import { call, user } from '../api.js';
import { html, useState } from '../html.js';
import { roles } from '../roles.js';
import { Sessions } from '../sessions.js';
import { Card, Field, Form, Page, say } from '../ui.js';

export default function Account() {
  const [turn, again] = useState(0);
  const request = (/** @type {Record<string, string>} */ values) => ({ method: 'POST', path: '/session/password', body: { old: values.old, new: values.new } });
  const shown = () => ({ method: 'POST', path: '/session/password', body: { old: '…', new: '…' } });
  const send = async (/** @type {Record<string, string>} */ values) => {
    await call(request(values));
    say('The password is changed. Your other sessions have ended.');
    again(turn + 1); // with empty fields
  };
  const { name = '', role = 'viewer' } = user.value ?? {};
  return html`
    <${Page} title="My account" lead=${`You are ${name}, as ${role}: ${roles[role].say}`}>
      <${Card} title="Password">
        <${Form} key=${'password' + turn} send=${send} label="Change the password" request=${shown}>
          <div class="fields">
            <${Field} label="Old password" name="old" type="password" autocomplete="current-password" required />
            <${Field} label="New password" name="new" type="password" autocomplete="new-password" required minlength="8" hint="At least 8 characters. Your other sessions end." />
          </div>
        <//>
      <//>
      <${Sessions} key=${'sessions' + turn} title="My sessions" of=${name} />
    <//>`;
}
