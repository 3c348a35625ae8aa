// A chat through /v1, as any client speaks it.

/**
 * @typedef {{type: 'text', text: string} | {type: 'image_url', image_url: {url: string}}} Part
 * @typedef {{id: string, type: 'function', function: {name: string, arguments: string}}} ToolCall
 * @typedef {{role: string, content: string|Part[]|null, tool_calls?: ToolCall[], tool_call_id?: string}} Message
 * @typedef {{status: number, text: string}} Refusal what a client is told in place of an answer: its status and its body
 * @typedef {{model: string, text: string, thought: string, calls: ToolCall[], results: Record<string, string>, refusal?: Refusal, stopped?: boolean,
 *   id?: string, first?: number, took?: number, finish?: string, usage?: any, record?: import('../calltable.js').Call}} Answer
 */

/** @param {string} model @returns {Answer} */
export const begun = (model) => ({ model, text: '', thought: '', calls: [], results: {} });

/** A failure whose text is what came of the gateway. */
class Refused extends Error {
  /** @param {Refusal} refusal */
  constructor(refusal) {
    super(refusal.text);
    this.refusal = refusal;
  }
}

/**
 * chat sends a request and tells what comes, until the end.
 * @param {any} request @param {string} key @param {AbortSignal} signal @param {(change: Partial<Answer>) => void} tell
 */
export async function chat(request, key, signal, tell) {
  const began = performance.now();
  const answer = begun(request.model);
  let id = '';
  try {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST', signal, credentials: 'omit',
      headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + key }, body: JSON.stringify(request),
    });
    id = response.headers.get('x-request-id') ?? '';
    tell({ id });
    if (!response.ok || !response.body) throw new Refused({ status: response.status, text: await response.text() });
    for await (const events of frames(response.body)) {
      for (const event of events) take(answer, event);
      if (!answer.first && (answer.text || answer.thought || answer.calls.length)) answer.first = performance.now() - began;
      tell({ ...answer, id, results: undefined });
    }
  } catch (err) {
    if (err instanceof Refused) tell({ refusal: err.refusal });
    else if (signal.aborted) tell({ stopped: true });
    else tell({ refusal: { status: 0, text: /** @type {Error} */ (err).message } });
  }
  tell({ took: performance.now() - began });
  return id;
}

/** frames are the events of a stream, as they come together. @param {ReadableStream<Uint8Array>} body */
async function* frames(body) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  for (let rest = ''; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    yield lines.filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]').map((line) => JSON.parse(line.slice(6)));
  }
}

/** take adds an event to an answer. @param {Answer} answer @param {any} event */
function take(answer, event) {
  if (event.error) throw new Refused({ status: 200, text: JSON.stringify(event) });
  if (event.usage) answer.usage = event.usage;
  const choice = event.choices?.[0];
  if (!choice) return;
  const delta = choice.delta ?? {};
  answer.text += delta.content ?? delta.refusal ?? '';
  answer.thought += delta.reasoning_content ?? delta.reasoning ?? '';
  answer.finish = choice.finish_reason ?? answer.finish;
  for (const part of delta.tool_calls ?? []) {
    const at = part.index ?? answer.calls.length;
    const call = answer.calls[at] ?? { id: '', type: 'function', function: { name: '', arguments: '' } };
    answer.calls = Object.assign([...answer.calls], {
      [at]: { ...call, id: part.id || call.id, function: { name: call.function.name + (part.function?.name ?? ''), arguments: call.function.arguments + (part.function?.arguments ?? '') } },
    });
  }
}
