// Clients that have no file of settings: what to type, or where to click.

/**
 * @typedef {{base: string, root: string, model: string, key: string}} Target
 * @typedef {{name: string, title: string, file: string, text: (t: Target) => string, by_hand?: string[]}} Snippet
 */

const json = JSON.stringify;
/** A text as a shell takes it. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** @type {Snippet[]} */
export const snippets = [
  { name: 'curl', title: 'curl', file: 'a shell',
    text: (t) => `curl ${quoted(t.base + '/chat/completions')} \\\n  -H ${quoted('Authorization: Bearer ' + t.key)} \\\n  -H 'Content-Type: application/json' \\\n  -d ${quoted(json({ model: t.model, messages: [{ role: 'user', content: 'Hello' }] }))}` },
  { name: 'openai-python', title: 'OpenAI, Python', file: 'pip install openai',
    text: (t) => `from openai import OpenAI\n\nclient = OpenAI(base_url=${json(t.base)}, api_key=${json(t.key)})\nanswer = client.chat.completions.create(\n    model=${json(t.model)},\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(answer.choices[0].message.content)` },
  { name: 'openai-js', title: 'OpenAI, JavaScript', file: 'npm install openai',
    text: (t) => `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${json(t.base)}, apiKey: ${json(t.key)} });\nconst answer = await client.responses.create({ model: ${json(t.model)}, input: "Hello" });\nconsole.log(answer.output_text);` },
  { name: 'anthropic-python', title: 'Anthropic, Python', file: 'pip install anthropic',
    text: (t) => `from anthropic import Anthropic\n\nclient = Anthropic(base_url=${json(t.root)}, auth_token=${json(t.key)})\nanswer = client.messages.create(\n    model=${json(t.model)},\n    max_tokens=1024,\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(answer.content[0].text)` },
  { name: 'langchain', title: 'LangChain', file: 'pip install langchain-openai',
    text: (t) => `from langchain_openai import ChatOpenAI\n\nmodel = ChatOpenAI(base_url=${json(t.base)}, api_key=${json(t.key)}, model=${json(t.model)})\nprint(model.invoke("Hello").content)` },
  { name: 'ai-sdk', title: 'Vercel AI SDK', file: 'npm install ai @ai-sdk/openai-compatible',
    text: (t) => `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";\nimport { generateText } from "ai";\n\nconst limen = createOpenAICompatible({ name: "limen", baseURL: ${json(t.base)}, apiKey: ${json(t.key)} });\nconst { text } = await generateText({ model: limen(${json(t.model)}), prompt: "Hello" });\nconsole.log(text);` },
];
