// The house that every test lives in: a fake upstream, the gateway in front of it, a key,
// and a way to run a command-line client against them. LIMEN_BIN and FAKEUPSTREAM_BIN name
// the two binaries. It knows nothing of any one client.

import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const secret = 'upstream-secret';

// upstreams are how the fake upstream is spoken to, one dialect each: by the model to-NAME
// clients reach it. A model's name tells the gateway what it can do.
export const upstreams = {
  chat: { speaks: 'openai-chat', below: '/v1', model: 'small' },
  responses: { speaks: 'openai-responses', below: '/v1', model: 'small' },
  anthropic: { speaks: 'anthropic', below: '/v1', model: 'claude-opus-4-8' },
  gemini: { speaks: 'gemini', below: '/v1beta', model: 'gemini-3.5-flash' },
  bedrock: { speaks: 'bedrock', below: '', model: 'anthropic.claude-opus-4-8' },
};
const each = (line) => Object.entries(upstreams).map(([name, u]) => line(name, u)).join('\n  ');

const config = (data, upstream, mute) => `
listen: 127.0.0.1:0
data: ${data}
log: { level: info, format: json }
providers:
  lab: { base_url: "${upstream}", api_key: ${secret}, speaks: [openai-chat, openai-responses] }
  mute: { base_url: "${mute}", api_key: ${secret}, speaks: [openai-chat, openai-responses] }
  ${each((name, u) => `up-${name}: { base_url: "${new URL(upstream).origin}${u.below}", api_key: ${secret}, speaks: [${u.speaks}], models: ["${u.model}"] }`)}
models:
  fast: { targets: [lab/small] }
  plain: { targets: [mute/small] }
  ${each((name, u) => `to-${name}: { targets: ["up-${name}/${u.model}"] }`)}
`;

// openHouse starts everything; close ends what it started and nothing else.
export async function openHouse() {
  const dir = await mkdtemp(path.join(tmpdir(), 'limen-clients-'));
  const children = [];
  let mute;
  const close = async () => {
    for (const child of children.reverse()) await stop(child);
    mute?.close();
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const upstreamURL = await start(children, binary('FAKEUPSTREAM_BIN'), ['-key', secret, '-models', Object.values(upstreams).map((u) => u.model).join()], 'stdout', /^listening (\S+)/);
    mute = await withoutTools(upstreamURL);
    const file = path.join(dir, 'limen.yaml');
    await writeFile(file, config(path.join(dir, 'data'), upstreamURL, mute.url));
    const limen = binary('LIMEN_BIN');
    const baseURL = await start(children, limen, ['--config', file], 'stderr', /"msg":"listening","base_url":"([^"]+)"/);
    const ask = async (...args) => JSON.parse((await promisify(execFile)(limen, [...args, '--json', '--config', file])).stdout);
    const { key, id: keyID } = await ask('keys', 'create', 'clients');
    return {
      dir, baseURL, key, keyID, close,
      // connect writes a client's own files below a home.
      connect: (home, client, model) => promisify(execFile)(limen, ['connect', client, '--url', baseURL, '--key', key, '--model', model, '--yes'], { env: { PATH: process.env.PATH, HOME: home } }),
      root: new URL(baseURL).origin, // where Messages clients start from
      upstream: upstreamControl(new URL(upstreamURL).origin + '/_control/'),
      calls: async () => (await ask('usage', '--calls', '100')).calls,
    };
  } catch (err) {
    await close();
    throw err;
  }
}

function binary(name) {
  const file = process.env[name];
  if (!file) throw new Error(`${name} must name a binary`);
  return path.resolve(file);
}

// start runs a server until it says where it listens.
async function start(children, file, args, stream, listening) {
  const child = spawn(file, args, { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  process.once('exit', () => child.kill('SIGKILL'));
  let said = '';
  for (const s of [child.stdout, child.stderr]) s.on('data', (b) => { said = (said + b).slice(-1 << 16); });
  return new Promise((resolve, reject) => {
    const failed = (why) => reject(new Error(`${path.basename(file)} ${why}:\n${said}`));
    const timer = setTimeout(failed, 60_000, 'did not start in time');
    child.once('error', (err) => { clearTimeout(timer); reject(err); });
    child.once('exit', (code) => { clearTimeout(timer); failed(`ended with ${code}`); });
    readline.createInterface({ input: child[stream] }).on('line', (line) => {
      const m = listening.exec(line);
      if (m) {
        clearTimeout(timer);
        resolve(m[1]);
      }
    });
  });
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null || !child.pid) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await ended;
  clearTimeout(timer);
}

// withoutTools is the upstream for models that have none. The fake upstream calls a tool
// whenever it is offered one, and agents always offer some: behind this it answers in words.
async function withoutTools(upstreamURL) {
  const server = http.createServer(async (req, res) => {
    const leave = new AbortController();
    res.once('close', () => leave.abort());
    try {
      const body = Buffer.concat(await req.toArray());
      const { authorization } = req.headers;
      const answer = await fetch(new URL(req.url, upstreamURL), {
        method: req.method, signal: leave.signal,
        headers: { authorization, 'content-type': 'application/json' },
        body: body.length ? withoutMembers(body, 'tools', 'tool_choice', 'parallel_tool_calls') : undefined,
      });
      res.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') });
      for await (const piece of answer.body) res.write(piece);
      res.end();
    } catch (err) {
      res.destroy(err);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    close: () => { server.close(); server.closeAllConnections(); },
  };
}

function withoutMembers(body, ...names) {
  const object = JSON.parse(body);
  for (const name of names) delete object[name];
  return JSON.stringify(object);
}

// upstreamControl reads the fake upstream's ledger and sets what it does by default.
function upstreamControl(control) {
  const ledger = async () => (await fetch(control + 'requests')).json();
  return {
    requests: async () => (await ledger()).filter((r) => r.method === 'POST'),
    forget: () => fetch(control + 'requests', { method: 'DELETE' }),
    setDefault: (fault) => fetch(control + 'default?' + new URLSearchParams({ fault }), { method: 'POST' }),
  };
}

// until asks again until the answer is truthy, which it returns.
export async function until(what, ask, ms = 20_000) {
  const deadline = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > deadline) throw new Error(`not in ${ms} ms: ${what}`);
    await pause(20);
  }
}

// modules is where npm put the clients.
export const modules = fileURLToPath(new URL('node_modules/', import.meta.url));

// runCLI runs a client, named by its path below node_modules, in a home and a working folder of
// its own, where prepare writes its configuration. It returns the JSON lines that the client
// printed and its exit code, null if it was killed: after ms, or when enough was fulfilled.
export async function runCLI(house, { file, args, env, prepare, enough, ms = 60_000 }) {
  const home = await mkdtemp(path.join(house.dir, 'home-'));
  const work = await mkdtemp(path.join(house.dir, 'work-'));
  await prepare(home, work);
  const child = spawn(path.join(modules, file), args, {
    cwd: work,
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: house.dir, LANG: 'C.UTF-8', GW_API_KEY: house.key, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // its own group, which its helpers share
  });
  let stdout = '', stderr = '';
  child.stdout.on('data', (b) => { stdout += b; });
  child.stderr.on('data', (b) => { stderr += b; });
  // A client may be a launcher of others, and does not always heed SIGTERM.
  let ended = false; // its group's number may be another's then
  const endGroup = () => { try { ended || process.kill(-child.pid, 'SIGKILL'); } catch { /* nobody is left */ } };
  const timer = setTimeout(endGroup, ms);
  enough?.then(endGroup, endGroup);
  try {
    const code = await whileEndable(endGroup, new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', () => { endGroup(); ended = true; });
      child.once('close', resolve);
    }));
    const lines = stdout.split('\n').slice(0, -1); // the last may be torn
    return { code, events: lines.filter((l) => l.startsWith('{')).map((l) => JSON.parse(l)), stdout, stderr };
  } finally {
    clearTimeout(timer);
  }
}

// whileEndable waits for what runs in a group of its own, which a signal to the test would not
// reach.
async function whileEndable(end, running) {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const passOn = (_, number) => { end(); process.exit(128 + number); };
  for (const s of signals) process.once(s, passOn);
  try {
    return await running;
  } finally {
    for (const s of signals) process.off(s, passOn);
  }
}

// skipCLIs is the option that skips a test of a large client.
export const skipCLIs = process.env.LIMEN_E2E_SKIP_CLIS === '1' && 'LIMEN_E2E_SKIP_CLIS=1';

// cutOnce makes the upstream cut streams until a request that isTurn has met that, then answer
// correctly.
export async function cutOnce(house, isTurn = () => true) {
  await house.upstream.setDefault('cut');
  try {
    await until('a cut stream', async () => (await house.upstream.requests()).some((r) => r.finished && isTurn(r)), 30_000);
  } finally {
    await house.upstream.setDefault('');
  }
}
