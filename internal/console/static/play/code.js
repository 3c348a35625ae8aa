// A request as code that others can run. The key is never in it.

/** @typedef {{name: string, text: string}} Snippet */

/** json is a value with two spaces a level. @param {any} value */
const json = (value) => JSON.stringify(value, null, 2);

/** python writes a value as Python does. @param {any} value @param {string} [indent] @returns {string} */
function python(value, indent = '') {
  const deeper = indent + '    ';
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return value.length ? `[\n${value.map((v) => deeper + python(v, deeper) + ',\n').join('')}${indent}]` : '[]';
  if (typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value);
  return members.length ? `{\n${members.map(([name, v]) => `${deeper}${JSON.stringify(name)}: ${python(v, deeper)},\n`).join('')}${indent}}` : '{}';
}

/** @param {any} request @returns {Snippet[]} */
export function snippets(request) {
  const base = location.origin + '/v1';
  const members = Object.entries(request);
  return [
    { name: 'curl', text: `curl -N ${base}/chat/completions \\\n  -H "Authorization: Bearer $LIMEN_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d @- <<'JSON'\n${json(request)}\nJSON` },
    { name: 'Python', text: `import os\n\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=${JSON.stringify(base)}, api_key=os.environ["LIMEN_KEY"])\nstream = client.chat.completions.create(\n${members.map(([name, v]) => `    ${name}=${python(v, '    ')},\n`).join('')})\nfor chunk in stream:\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "", end="", flush=True)` },
    { name: 'JavaScript', text: `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${JSON.stringify(base)}, apiKey: process.env.LIMEN_KEY });\nconst stream = await client.chat.completions.create(${json(request)});\nfor await (const chunk of stream) {\n  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");\n}` },
  ];
}
