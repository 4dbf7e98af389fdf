// SPDX-License-Identifier: Apache-2.0
// The model client against mocks of OpenAI's server that others wrote:
// @copilotkit/aimock with its fault flags, and openai-mock-api. Each fault
// ends as a fault or as a retry that brought the right answer, never as an
// answer that is too short.
'use strict';
const assert = require('node:assert');
const { test, after } = require('node:test');
const { spawn, execFile } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

const probe = path.join(process.env.CORDON_BUILD, 'tests/agents/model-probe');
const modules = process.env.NODE_PATH;
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cordon-agents-'));
const key = 'sk-test-0123456789abcdef';
const servers = [];

after(() => {
	for (const server of servers)
		server.kill('SIGKILL');
	fs.rmSync(dir, { recursive: true });
});

const long = 'A long answer, so that there is something to lose: '.repeat(8) + 'the end.';

fs.writeFileSync(path.join(dir, 'aimock.json'), JSON.stringify({ fixtures: [
	{ match: { userMessage: 'hello' }, response: { content: 'Hi there!' } },
	{ match: { userMessage: 'long' }, response: { content: long }, chunkSize: 7 },
	{ match: { userMessage: 'think' }, response: { content: '42', reasoning: 'six times seven' } },
	{ match: { userMessage: 'weather', hasToolResult: false }, response: { toolCalls: [
		{ name: 'get_weather', arguments: { city: 'Bergen' } },
		{ name: 'get_time', arguments: { zone: 'CET' } }] } },
	{ match: { userMessage: 'weather', hasToolResult: true }, response: { content: 'It rains at noon.' } },
	{ match: { userMessage: 'truncated' }, response: { content: long }, chunkSize: 7,
		latency: 5, truncateAfterChunks: 5 },
	{ match: { userMessage: 'torn' }, response: { content: long }, chunkSize: 7,
		latency: 20, disconnectAfterMs: 150 },
	{ match: { userMessage: 'limit' }, response: { status: 429,
		error: { message: 'Rate limit reached', type: 'rate_limit_error', code: 'rate_limit_exceeded' } } },
	{ match: { userMessage: 'Fibonacci', hasToolResult: false }, response: { toolCalls: [
		{ name: 'run_python', arguments: { code: 'a, b = 0, 1\nfor _ in range(10):\n    print(a, end=" ")\n    a, b = b, a + b\n' } }] } },
	{ match: { userMessage: 'Fibonacci', toolResultContains: '0 1 1 2 3 5 8 13 21 34' },
		response: { content: 'The last one is 34.' } },
	{ match: { userMessage: 'structured' }, response: { content: { answer: 42 } } },
] }));

fs.writeFileSync(path.join(dir, 'mock.yaml'), `apiKey: '${key}'
responses:
  - id: greeting
    messages:
      - role: user
        content: hello
      - role: assistant
        content: "Hello! I'm doing well."
  - id: tools
    messages:
      - role: user
        content: weather
        matcher: contains
      - role: assistant
        tool_calls:
          - id: call_abc
            type: function
            function:
              name: get_weather
              arguments: '{"city": "Bergen"}'
`);

async function freePort() {
	const server = net.createServer();
	await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
	const { port } = server.address();
	await new Promise((resolve) => { server.close(resolve); });
	return port;
}

async function listens(port, child) {
	for (let i = 0; i < 300 && child.exitCode === null; i++) {
		const is = await new Promise((resolve) => {
			const s = net.connect(port, '127.0.0.1', () => { s.destroy(); resolve(true); });
			s.on('error', () => resolve(false));
		});
		if (is)
			return;
		await new Promise((resolve) => { setTimeout(resolve, 50); });
	}
	throw new Error('the mock did not start');
}

async function start(script, ...args) {
	const port = await freePort();
	const child = spawn(process.execPath,
		[path.join(modules, script), '-p', String(port), ...args],
		{ stdio: ['ignore', fs.openSync(path.join(dir, 'log'), 'a'), 'inherit'] });
	servers.push(child);
	await listens(port, child);
	return { child, url: `http://127.0.0.1:${port}/v1` };
}

const aimock = (...flags) => start('@copilotkit/aimock/dist/cli.js',
	'-f', path.join(dir, 'aimock.json'), '--log-level', 'warn', ...flags);
const mockApi = () => start('openai-mock-api/dist/cli.js', '-c', path.join(dir, 'mock.yaml'));

// The lines of the probe for a request, asked so many times.
function ask(server, request, { times = 1, config = {} } = {}) {
	const all = { model: 'gpt-4o', base_url: server.url, api_key: { env: 'PROBE_KEY' },
		retry_delay: 0.01, ...config };
	const what = { messages: [{ role: 'user', source: 'user', content: request.text }], ...request };
	delete what.text;
	return new Promise((resolve, reject) => {
		execFile(probe, [JSON.stringify(all), JSON.stringify(what), String(times)],
			{ env: { ...process.env, PROBE_KEY: key, no_proxy: '*' }, maxBuffer: 1 << 26 },
			(error, out, err) => {
				if (error)
					return reject(new Error(`${error.message} ${err}`));
				assert.ok(!out.includes(key), 'the key was shown');
				return resolve(out.trim().split('\n').map((line) => JSON.parse(line)));
			});
	});
}

async function one(...args) {
	return (await ask(...args))[0];
}

const tools = [
	{ name: 'get_weather', description: 'The weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
	{ name: 'get_time', description: 'The time', parameters: { type: 'object', properties: { zone: { type: 'string' } } } },
];

// Either the whole answer or a fault with a text; how many were right.
function wholeOrFault(answers, right) {
	let good = 0;
	for (const a of answers) {
		if (a.result) {
			assert.equal(a.result.content, right);
			good++;
		} else {
			assert.ok(a.fault.message.length > 10, JSON.stringify(a));
		}
	}
	return good;
}

test('aimock: plain, streamed, thoughts, structured', async () => {
	const server = await aimock();
	let a = await one(server, { text: 'hello' });
	assert.equal(a.result.content, 'Hi there!');
	assert.equal(a.result.finish_reason, 'stop');
	assert.ok(a.result.usage.completion_tokens > 0);
	assert.deepEqual(a.chunks, []);
	a = await one(server, { text: 'long', stream: true });
	assert.equal(a.result.content, long);
	assert.equal(a.chunks.join(''), long);
	assert.ok(a.chunks.length > 20);
	assert.ok(a.result.usage.completion_tokens > 0);
	for (const stream of [false, true]) {
		a = await one(server, { text: 'think', stream }, { config: { model: 'o3' } });
		assert.equal(a.result.content, '42');
		assert.equal(a.result.thought, 'six times seven');
	}
	a = await one(server, { text: 'structured', output_schema: { name: 'a', schema: { type: 'object',
		properties: { answer: { type: 'integer' } }, required: ['answer'], additionalProperties: false } } });
	assert.deepEqual(JSON.parse(a.result.content), { answer: 42 });
	a = await one(server, { text: 'nothing that it knows' });
	assert.equal(a.fault.code, 'not_found');
	server.child.kill();
});

test('aimock: parallel tool calls and their results', async () => {
	const server = await aimock();
	for (const stream of [false, true]) {
		const a = await one(server, { text: 'weather', tools, stream });
		const calls = a.result.calls;
		assert.equal(a.result.finish_reason, 'function_calls');
		assert.deepEqual(calls.map((c) => [c.name, JSON.parse(c.arguments)]),
			[['get_weather', { city: 'Bergen' }], ['get_time', { zone: 'CET' }]]);
		assert.notEqual(calls[0].id, calls[1].id);
		const b = await one(server, { tools, stream, messages: [
			{ role: 'system', content: 'be brief' },
			{ role: 'user', source: 'user', content: 'weather' },
			{ role: 'assistant', source: 'a', content: null, calls },
			{ role: 'tool', results: calls.map((c) => ({ call_id: c.id, name: c.name, content: 'rain', is_error: false })) },
		] });
		assert.equal(b.result.content, 'It rains at noon.');
	}
	server.child.kill();
});

test('aimock: streams that break in the middle are faults', async () => {
	const server = await aimock();
	for (const text of ['truncated', 'torn']) {
		const a = await one(server, { text, stream: true });
		assert.equal(a.result, undefined);
		assert.equal(a.fault.code, 'unavailable');
		assert.ok(a.chunks.join('').length < long.length);
	}
	server.child.kill();
});

test('aimock: --chaos-drop', async () => {
	let server = await aimock('--chaos-drop', '1');
	for (const stream of [false, true]) {
		const a = await one(server, { text: 'long', stream });
		assert.equal(a.fault.code, 'unavailable');
		assert.match(a.fault.message, /500/);
	}
	server.child.kill();
	server = await aimock('--chaos-drop', '0.5');
	// Four attempts each: about one of sixteen fails.
	const good = wholeOrFault(await ask(server, { text: 'long', stream: true }, { times: 40 }), long);
	assert.ok(good > 25, `only ${good} of 40`);
	server.child.kill();
});

test('aimock: --chaos-malformed', async () => {
	let server = await aimock('--chaos-malformed', '1');
	for (const stream of [false, true]) {
		const a = await one(server, { text: 'long', stream });
		assert.equal(a.fault.code, 'unavailable');
		assert.deepEqual(a.chunks, []);
	}
	server.child.kill();
	server = await aimock('--chaos-malformed', '0.5');
	const good = wholeOrFault(await ask(server, { text: 'long', stream: true }, { times: 40 }), long);
	// An answer began: it is not asked for again.
	assert.ok(good > 5 && good < 35, `${good} of 40`);
	server.child.kill();
});

test('aimock: --chaos-disconnect', async () => {
	let server = await aimock('--chaos-disconnect', '1');
	for (const stream of [false, true]) {
		const a = await one(server, { text: 'long', stream });
		assert.equal(a.fault.code, 'unavailable');
		assert.match(a.fault.message, /cannot be reached/);
	}
	server.child.kill();
	server = await aimock('--chaos-disconnect', '0.5');
	const good = wholeOrFault(await ask(server, { text: 'long', stream: true }, { times: 40 }), long);
	assert.ok(good > 25, `only ${good} of 40`);
	server.child.kill();
});

test('aimock: --chaos-ratelimit, with its Retry-After', async () => {
	const server = await aimock('--chaos-ratelimit', '1');
	const a = await one(server, { text: 'long' }, { config: { max_retries: 1 } });
	assert.equal(a.fault.code, 'overloaded');
	// It asks for a second between the two.
	assert.ok(a.ms >= 1000, `${a.ms} ms`);
	server.child.kill();
});

test('aimock: --chaos-latency and deadlines', async () => {
	const server = await aimock('--chaos-latency', '1500');
	let a = await one(server, { text: 'long', stream: true });
	assert.equal(a.result.content, long);
	assert.ok(a.ms >= 1500);
	a = await one(server, { text: 'long', deadline_ms: 100 });
	assert.equal(a.fault.code, 'deadline_exceeded');
	assert.ok(a.ms < 1400, `${a.ms} ms`);
	a = await one(server, { text: 'long' }, { config: { first_byte_timeout: 0.1 } });
	assert.equal(a.fault.code, 'deadline_exceeded');
	server.child.kill();
});

test('aimock: errors by their status', async () => {
	const server = await aimock();
	const a = await one(server, { text: 'limit' }, { config: { max_retries: 0 } });
	assert.equal(a.fault.code, 'overloaded');
	assert.equal(a.fault.retryable, true);
	assert.match(a.fault.message, /Rate limit reached/);
	server.child.kill();
});

test('openai-mock-api: plain, streamed, tool calls, keys', async () => {
	const server = await mockApi();
	for (const stream of [false, true]) {
		let a = await one(server, { text: 'hello', stream });
		assert.equal(a.result.content, "Hello! I'm doing well.");
		assert.equal(a.result.finish_reason, 'stop');
		a = await one(server, { text: 'the weather?', tools, stream });
		assert.equal(a.result.finish_reason, 'function_calls');
		assert.deepEqual(a.result.calls, [{ id: 'call_abc', name: 'get_weather', arguments: '{"city": "Bergen"}' }]);
	}
	process.env.OTHER_KEY = 'sk-wrong-key-9876543210';
	const a = await one(server, { text: 'hello' }, { config: { api_key: { env: 'OTHER_KEY' } } });
	assert.equal(a.fault.code, 'unauthorized');
	assert.ok(!a.fault.message.includes('9876543210'));
	server.child.kill();
});

// The command, as a person runs it: the last lines of --json.
function agent(env, ...args) {
	const build = process.env.CORDON_BUILD;
	return new Promise((resolve, reject) => {
		execFile(path.join(build, 'cordon'), ['agent', 'run', '--json', ...args],
			{ env: { ...process.env, CORDON_LIBEXEC: build, CORDON_STATE_DIR: path.join(dir, 'state'),
				CORDON_RUNTIME_DIR: path.join(dir, 'run'), no_proxy: '*', ...env }, maxBuffer: 1 << 26 },
			(error, out, err) => {
				if (error)
					return reject(new Error(`${error.message} ${out} ${err}`));
				assert.ok(!(out + err).includes(key), 'the key was shown');
				return resolve(out.trim().split('\n').map((line) => JSON.parse(line)));
			});
	});
}

// Every file below, as one text.
function everything(where) {
	return fs.readdirSync(where, { withFileTypes: true }).map((entry) => {
		const at = path.join(where, entry.name);
		if (entry.isDirectory())
			return everything(at);
		return entry.isFile() ? fs.readFileSync(at, 'latin1') : '';
	}).join('\n');
}

test('aimock: an agent writes and runs code, is recorded and played again', async () => {
	const server = await aimock();
	const coder = path.join(dir, 'coder.yaml');
	fs.writeFileSync(coder, fs.readFileSync(path.join(process.env.CORDON_TOP, 'examples/coder.yaml'), 'utf8')
		.replace(/^model: (.*)$/m, 'model: {model: $1, info: {price_prompt: 1, price_completion: 2}}'));
	const tape = path.join(dir, 'tape.jsonl');
	const task = 'Compute the first 10 Fibonacci numbers';
	const check = (lines) => {
		const end = lines[lines.length - 1];
		assert.equal(end.type, 'TaskResult');
		assert.equal(end.status, 'completed');
		assert.match(JSON.stringify(lines.find((line) => line.type === 'ToolCallExecutionEvent')),
			/0 1 1 2 3 5 8 13 21 34/);
		assert.equal(end.messages[end.messages.length - 1].content, 'The last one is 34.');
		return end.usage;
	};
	const asked = check(await agent({ OPENAI_BASE_URL: server.url, OPENAI_API_KEY: key },
		'--record', tape, coder, task));
	server.child.kill();
	// The server is gone, and the key with it.
	const played = check(await agent({ OPENAI_BASE_URL: '', OPENAI_API_KEY: '' },
		'--replay', tape, coder, task));
	assert.equal(played.prompt_tokens, asked.prompt_tokens);
	assert.equal(played.completion_tokens, asked.completion_tokens);
	assert.ok(asked.cost > 0 && Math.abs(played.cost - asked.cost) < 1e-9);
	// Ledger, checkpoints, recording.
	assert.ok(everything(dir).includes('Fibonacci'));
	assert.ok(!everything(dir).replaceAll(`apiKey: '${key}'`, '').includes(key), 'the key is on the disk');
});
