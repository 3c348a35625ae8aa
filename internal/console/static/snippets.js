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
  { name: 'langchain', title: 'LangChain, Python', file: 'pip install langchain-openai',
    text: (t) => `from langchain_openai import ChatOpenAI\n\nmodel = ChatOpenAI(base_url=${json(t.base)}, api_key=${json(t.key)}, model=${json(t.model)})\nprint(model.invoke("Hello").content)` },
  { name: 'langchain-js', title: 'LangChain, JavaScript', file: 'npm install @langchain/openai',
    text: (t) => `import { ChatOpenAI } from "@langchain/openai";\n\nconst model = new ChatOpenAI({ configuration: { baseURL: ${json(t.base)} }, apiKey: ${json(t.key)}, model: ${json(t.model)} });\nconst answer = await model.invoke("Hello");\nconsole.log(answer.content);` },
  { name: 'ai-sdk', title: 'Vercel AI SDK', file: 'npm install ai @ai-sdk/openai-compatible',
    text: (t) => `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";\nimport { generateText } from "ai";\n\nconst limen = createOpenAICompatible({ name: "limen", baseURL: ${json(t.base)}, apiKey: ${json(t.key)} });\nconst { text } = await generateText({ model: limen(${json(t.model)}), prompt: "Hello" });\nconsole.log(text);` },
  { name: 'openai-go', title: 'OpenAI, Go', file: 'go get github.com/openai/openai-go/v3',
    text: (t) => `package main\n\nimport (\n\t"context"\n\t"fmt"\n\n\t"github.com/openai/openai-go/v3"\n\t"github.com/openai/openai-go/v3/option"\n)\n\nfunc main() {\n\tclient := openai.NewClient(option.WithBaseURL(${json(t.base)}), option.WithAPIKey(${json(t.key)}))\n\tanswer, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{\n\t\tModel:    ${json(t.model)},\n\t\tMessages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")},\n\t})\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\tfmt.Println(answer.Choices[0].Message.Content)\n}` },
  { name: 'cursor', title: 'Cursor', file: 'Settings, Models, API Keys',
    text: (t) => `OpenAI API Key            ${t.key}\nOverride OpenAI Base URL  ${t.base}\nAdd model                 ${t.model}`,
    by_hand: ['Cursor\'s own servers make the calls: the base URL must be one that the internet reaches, by HTTPS.', 'While the base URL is overridden, it counts for all of OpenAI\'s models.'] },
  { name: 'open-webui', title: 'Open WebUI', file: 'its environment',
    text: (t) => `OPENAI_API_BASE_URL=${t.base}\nOPENAI_API_KEY=${t.key}`,
    by_hand: ['Once it has been started, it keeps its own settings: Admin Panel, Settings, Connections, OpenAI API.', 'In a container, localhost is the container: write the name of this machine.'] },
  { name: 'librechat', title: 'LibreChat', file: 'librechat.yaml',
    text: (t) => `endpoints:\n  custom:\n    - name: "Limen"\n      apiKey: ${json(t.key)}\n      baseURL: ${json(t.base)}\n      models:\n        default: [${json(t.model)}]\n        fetch: true\n      titleConvo: true\n      titleModel: ${json(t.model)}`,
    by_hand: ['In a container, localhost is the container: write the name of this machine.'] },
];
