// Agents with the settings that `limen connect` wrote.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { modules, openHouse, runCLI, skipCLIs } from './harness.mjs';
import { quiet } from './quiet.mjs';

const command = 'echo limen-$((6*7))', output = 'limen-42'; // what a shell makes of it

// agents by the names that connect knows them by: the program, how it is asked, what it says at last, its
// tool that runs commands, the operation that it calls, and, of some, how many calls a plain turn takes, and a
// file of settings that was there with what of it must stay.
const agents = {
  claude: {
    file: '@anthropic-ai/claude-code-linux-x64/claude', args: ['--dangerously-skip-permissions', '--output-format', 'stream-json', '--verbose', '-p'],
    operation: 'messages', said: ({ events }) => events.at(-1).result,
    tool: 'Bash', input: { command, description: 'echo' },
    had: { file: '.claude/settings.json', text: '{"cleanupPeriodDays": 7}', stays: '"cleanupPeriodDays": 7' },
  },
  cline: {
    file: '@cline/cli-linux-x64/bin/cline', args: ['--json'],
    operation: 'chat', said: ({ events }) => events.find((e) => e.type === 'run_result').text,
    tool: 'run_commands', input: { commands: [command] },
  },
  codex: {
    file: '.bin/codex', args: ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '--json'],
    operation: 'responses', calls: 1, said: ({ events }) => events.filter((e) => e.item?.type === 'agent_message').map((e) => e.item.text).join('|'),
    tool: 'exec_command', input: { cmd: command },
    had: { file: '.codex/config.toml', text: '# mine\nmodel = "gpt-5"\napproval_policy = "never"\n\n[analytics]\nenabled = false\n', stays: '# mine\n' },
  },
  continue: { file: '.bin/cn', args: ['--auto', '-p'], operation: 'chat', calls: 1, said: ({ stdout }) => stdout.trim(), tool: 'Bash', input: { command } },
  opencode: {
    file: 'opencode-linux-x64/bin/opencode', args: ['run', '--format', 'json'],
    operation: 'chat', said: ({ events }) => events.filter((e) => e.type === 'text').map((e) => e.part.text).join('|'),
    tool: 'bash', input: { command },
  },
  // No lock can have Qwen Code: some of its packages are in no registry. It is tried where it was installed besides.
  'qwen-code': {
    file: '.bin/qwen', args: ['--yolo', '-p'], operation: 'chat', said: ({ stdout }) => stdout.trim(), tool: 'run_shell_command', input: { command, is_background: false },
  },
};

let house;
before(async () => { house = skipCLIs ? undefined : await openHouse(); });
after(() => house?.close());

for (const [name, { file, args, operation, calls, said, tool, input, had }] of Object.entries(agents)) {
  const absent = !existsSync(modules + file) && 'it is not installed';
  describe(`limen connect ${name}`, { skip: skipCLIs || absent }, () => {
    // turn asks the agent once, whose settings name the model.
    async function turn(model, prompt) {
      let settings;
      const ended = await runCLI(house, {
        // opencode puts quotes around an argument with a space.
        file, args: [...args, ...(name === 'opencode' ? prompt.split(' ') : [prompt])], env: { ...quiet, LIMEN_KEY: house.key },
        prepare: async (home) => {
          settings = had && path.join(home, had.file);
          if (had) {
            await mkdir(path.dirname(settings));
            await writeFile(settings, had.text);
          }
          await house.connect(home, name, model);
          await house.upstream.forget(); // the checks of connect
        },
      });
      assert.equal(ended.code, 0, ended.stdout + ended.stderr);
      if (had) assert.ok((await readFile(settings, 'utf8')).includes(had.stays));
      const requests = await house.upstream.requests();
      assert.deepEqual(requests.map((r) => r.refused).filter(Boolean), []);
      const recorded = (await house.calls()).slice(0, requests.length); // newest first
      assert.deepEqual([...new Set(recorded.map((c) => `${c.operation} ${c.model} ${c.status}`))], [`${operation} ${model} 200`]);
      return { said: said(ended), requests };
    }

    test('a plain turn', async () => {
      const { said, requests } = await turn('plain', 'Say hello.');
      assert.equal(said, 'Hello from small.');
      if (calls) assert.equal(requests.length, calls);
    });

    test('a tool call', async () => {
      const { said, requests } = await turn('fast', `call ${tool} ${JSON.stringify(input).replaceAll(' ', String.raw`\u0020`)}`);
      assert.match(said, /The tool said: /);
      assert.ok(requests.at(-1).body.includes(output), requests.at(-1).body);
    });
  });
}
