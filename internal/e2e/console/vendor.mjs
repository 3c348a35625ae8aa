// A vendor of models that says what it is told to: any text as a name, as an answer and as an error.

import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * openVendor serves Chat Completions. answer tells of a request what comes of it.
 * @param {{models: string[], answer: (body: any) => {text?: string, thought?: string, status?: number, error?: string, after?: number, lasts?: number, service?: string, usage?: object}}} options
 */
export async function openVendor({ models, answer }) {
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: models.map((id) => ({ id, object: 'model', created: 0, owned_by: id })) }));
      return;
    }
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString());
    const { text = '', thought, status = 200, error, after = 0, lasts = 0, service, usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 } } = answer(body);
    await wait(after);
    if (error !== undefined) {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ error: { message: error, type: error.slice(0, 40), code: error.slice(0, 40), param: null } }));
      return;
    }
    const head = { id: 'chatcmpl-1', created: 0, model: body.model, ...(service && { service_tier: service }) };
    if (!body.stream) {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text } }], usage }));
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const chunk = (delta, rest = {}) => response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`);
    chunk({ role: 'assistant', content: '', ...(thought && { reasoning_content: thought }) });
    await wait(lasts);
    chunk({ content: text });
    chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    chunk({}, { choices: [], usage });
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    close: () => { server.closeAllConnections(); server.close(); },
  };
}
