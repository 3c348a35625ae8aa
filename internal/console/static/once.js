// What is shown once, and never again.
import { html } from './html.js';
import { Code, Dialog } from './ui.js';

/**
 * @param {{title: string, say: string, text: string, label: string, close: () => void, children?: any}} props
 */
export const Once = ({ title, say, text, label, close, children }) => html`
  <${Dialog} title=${title} close=${close}>
    <div class="stack">
      <p>${say} It is shown this once: Limen keeps only a hash of it.</p>
      <div class="code secret"><${Code} text=${text} label=${label} /></div>
      ${children}
      <div class="row"><button type="button" class="primary" onClick=${close}>Done</button></div>
    </div>
  <//>`;

const letters = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';

/** password makes one that nobody guesses, without letters that look alike. */
export const password = () => [...crypto.getRandomValues(new Uint32Array(20))].map((n) => letters[n % letters.length]).join('');
