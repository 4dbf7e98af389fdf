// SPDX-License-Identifier: Apache-2.0
// dockerode and testcontainers, as released, against DOCKER_HOST.
'use strict';
const assert = require('node:assert');
const { test, afterEach, after } = require('node:test');
const { once } = require('node:events');
const { PassThrough } = require('node:stream');
const Docker = require('dockerode');

// Its reaper is a container that would be given the socket itself.
process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
// The Docker Engine of the calibration has no network `bridge`, which is asked
// for the address of the machine.
if (process.env.CLIENTS_SERVER === 'docker')
	process.env.TESTCONTAINERS_HOST_OVERRIDE = 'localhost';
const { GenericContainer, Wait } = require('testcontainers');

const image = process.env.CLIENTS_IMAGE;
const docker = new Docker(); // from DOCKER_HOST

async function removeAll() {
	for (const box of await docker.listContainers({ all: true }))
		await docker.getContainer(box.Id).remove({ force: true });
}

afterEach(removeAll);

// The two streams of a connection, as text, when it ended.
function collect(stream) {
	const text = { out: '', err: '' };
	const out = new PassThrough();
	const err = new PassThrough();
	out.on('data', (data) => { text.out += data; });
	err.on('data', (data) => { text.err += data; });
	docker.modem.demuxStream(stream, out, err);
	return new Promise((resolve, reject) => {
		stream.on('end', () => setImmediate(() => resolve(text)));
		stream.on('error', reject);
	});
}

async function sleeper(more) {
	const box = await docker.createContainer({ Image: image, Cmd: ['sleep', '600'], ...more });
	await box.start();
	return box;
}

test('dockerode: ping, version, info', async () => {
	assert.equal(String(await docker.ping()), 'OK');
	assert.equal((await docker.version()).Os, 'linux');
	assert.ok((await docker.info()).NCPU >= 1);
});

test('dockerode: run', async () => {
	const stream = new PassThrough();
	const ended = once(stream, 'end');
	let text = '';
	stream.on('data', (data) => { text += data; });
	const [result, box] = await docker.run(image, ['sh', '-c', 'echo hello; exit 4'], stream, { Tty: true });
	assert.equal(result.StatusCode, 4);
	// run() ends with the answer to wait; the output has a connection of its
	// own, and which of two readable ones node reads first is epoll's choice.
	await ended;
	assert.equal(text.replace(/\r/g, ''), 'hello\n');
	await box.remove();
});

test('dockerode: create, attach, start, wait', async () => {
	const box = await docker.createContainer({
		Image: image, Cmd: ['sh', '-c', 'echo out; echo err >&2; exit 6'],
		AttachStdout: true, AttachStderr: true,
	});
	const stream = await box.attach({ stream: true, stdout: true, stderr: true });
	const text = collect(stream);
	await box.start();
	assert.equal((await box.wait()).StatusCode, 6);
	assert.deepEqual(await text, { out: 'out\n', err: 'err\n' });
});

test('dockerode: attach with stdin (hijack)', async () => {
	const box = await docker.createContainer({
		Image: image, Cmd: ['head', '-n', '1'], OpenStdin: true, StdinOnce: true,
		AttachStdin: true, AttachStdout: true,
	});
	const stream = await box.attach({ stream: true, stdin: true, stdout: true, hijack: true });
	const text = collect(stream);
	await box.start();
	stream.write('typed\nmore\n');
	assert.equal((await text).out, 'typed\n');
	assert.equal((await box.wait()).StatusCode, 0);
});

test('dockerode: exec without Upgrade', async () => {
	const box = await sleeper();
	const exec = await box.exec({ Cmd: ['sh', '-c', 'echo out; echo err >&2; exit 3'], AttachStdout: true, AttachStderr: true });
	const stream = await exec.start({});
	assert.deepEqual(await collect(stream), { out: 'out\n', err: 'err\n' });
	assert.equal((await exec.inspect()).ExitCode, 3);
});

test('dockerode: exec with stdin (hijack)', async () => {
	const box = await sleeper();
	const exec = await box.exec({ Cmd: ['wc', '-c'], AttachStdin: true, AttachStdout: true });
	const stream = await exec.start({ hijack: true, stdin: true });
	const text = collect(stream);
	stream.write(Buffer.alloc(300000, 'x'));
	stream.end();
	assert.equal((await text).out.trim(), '300000');
});

test('dockerode: logs, inspect, stats, top', async () => {
	const box = await sleeper({ Cmd: ['sh', '-c', 'echo logged; sleep 600'], name: 'looked' });
	const seen = await box.inspect();
	assert.equal(seen.Name, '/looked');
	assert.equal(seen.State.Status, 'running');
	let logs = '';
	for (let i = 0; i < 50 && !logs.includes('logged'); i++) {
		logs = String(await box.logs({ stdout: true, stderr: true }));
		await new Promise((done) => setTimeout(done, 100));
	}
	assert.ok(logs.includes('logged'));
	const stats = await box.stats({ stream: false });
	assert.ok(stats.memory_stats.usage > 0);
	assert.equal((await box.top()).Titles.includes('PID'), true);
});

test('dockerode: archives', async () => {
	const box = await sleeper();
	const data = require('node:child_process').execSync('mkdir d && echo inside >d/f && tar -c d', { cwd: process.env.CLIENTS_TMP });
	await box.putArchive(data, { path: '/tmp' });
	const chunks = [];
	for await (const chunk of await box.getArchive({ path: '/tmp/d/f' }))
		chunks.push(chunk);
	assert.ok(Buffer.concat(chunks).includes('inside\n'));
	await assert.rejects(box.getArchive({ path: '/nosuch' }), (e) => e.statusCode === 404);
});

test('dockerode: stop, restart, kill, rename, pause, force remove', async () => {
	const box = await sleeper({ name: 'first' });
	await box.rename({ name: 'second' });
	await box.pause();
	await box.unpause();
	await box.restart({ t: 0 });
	await box.kill();
	await box.wait();
	await assert.rejects(box.kill(), (e) => e.statusCode === 409);
	await box.start();
	await box.remove({ force: true });
	await assert.rejects(box.inspect(), (e) => e.statusCode === 404);
});

test('dockerode: an image that is missing', async () => {
	await assert.rejects(docker.createContainer({ Image: 'cordon-nosuch:1' }),
		(e) => e.statusCode === 404 && /No such image/.test(e.message));
	await assert.rejects(docker.getImage('cordon-nosuch:1').inspect(), (e) => e.statusCode === 404);
});

test('dockerode: a refusal names the field', { skip: process.env.CLIENTS_SERVER === 'docker' && 'a Docker Engine allows it' }, async () => {
	await assert.rejects(docker.createContainer({ Image: image, HostConfig: { Privileged: true } }),
		(e) => e.statusCode === 403 && /cordon: .*Privileged/.test(e.message));
	assert.deepEqual(await docker.listContainers({ all: true }), []);
});

test('testcontainers: start, exec, copy, logs, stop', async () => {
	const box = await new GenericContainer(image)
		.withCommand(['sh', '-c', 'cat /tmp/given; echo ready; sleep 600'])
		.withCopyContentToContainer([{ content: 'given content\n', target: '/tmp/given' }])
		.withEnvironment({ KEY: 'value' })
		.withWaitStrategy(Wait.forLogMessage('ready'))
		.start();
	const result = await box.exec(['sh', '-c', 'echo $KEY; cat /tmp/given; exit 2']);
	assert.equal(result.exitCode, 2);
	assert.equal(result.output, 'value\ngiven content\n');
	await box.copyContentToContainer([{ content: 'later', target: '/tmp/later' }]);
	assert.equal((await box.exec(['cat', '/tmp/later'])).output, 'later');
	const logs = await box.logs();
	// Its socket does not keep the process awake (they unref it): the deadline does.
	let deadline;
	const text = await new Promise((resolve, reject) => {
		let have = '';
		deadline = setTimeout(() => reject(new Error(`no "ready" in: ${have}`)), 30000);
		logs.on('data', (chunk) => {
			have += chunk;
			if (have.includes('ready'))
				resolve(have);
		});
		logs.on('end', () => resolve(have)).on('error', reject);
	});
	clearTimeout(deadline);
	logs.destroy();
	assert.ok(text.includes('given content'));
	await box.stop({ timeout: 0 });
	assert.deepEqual(await docker.listContainers({ all: true }), []);
});

test('testcontainers: several at once', async () => {
	const boxes = await Promise.all([1, 2, 3].map((i) => new GenericContainer(image)
		.withCommand(['sh', '-c', `echo ready ${i}; sleep 600`])
		.withWaitStrategy(Wait.forLogMessage(`ready ${i}`)).start()));
	for (const [i, box] of boxes.entries())
		assert.equal((await box.exec(['echo', String(i)])).output, `${i}\n`);
	await Promise.all(boxes.map((box) => box.stop({ timeout: 0 })));
});

after(() => setTimeout(() => process.exit(), 500).unref());
