// The npm package "memcache-client": promises, fire and forget, cas, raw commands.
// Usage: node memcache_client.js PORT. Ends with status 0 when every answer was right.
'use strict';

const assert = require('node:assert');
const { MemcacheClient } = require('memcache-client');

const server = { server: `127.0.0.1:${process.argv[2]}`, maxConnections: 3 };
const client = new MemcacheClient({ server, cmdTimeout: 4000 });

async function oneKey() {
  assert.deepStrictEqual(await client.set('mc:a', 'first'), ['STORED']);
  assert.strictEqual((await client.get('mc:a')).value, 'first');
  assert.deepStrictEqual(await client.append('mc:a', '!'), ['STORED']);
  const { casUniq } = await client.gets('mc:a');
  assert.deepStrictEqual(await client.cas('mc:a', 'second', { casUniq }), ['STORED']);
  await assert.rejects(client.cas('mc:a', 'third', { casUniq }));
  assert.strictEqual((await client.get('mc:a')).value, 'second');
  assert.deepStrictEqual(await client.touch('mc:a', 60), ['TOUCHED']);
  assert.deepStrictEqual(await client.delete('mc:a'), ['DELETED']);
  assert.strictEqual(await client.get('mc:a'), undefined);
}

async function numbersAndRawCommands() {
  await client.set('mc:n', '5');
  assert.strictEqual(await client.incr('mc:n', 10), '15');
  assert.strictEqual(await client.decr('mc:n', 5), '10');
  assert.deepStrictEqual(await client.cmd('add mc:n 0 0 1\r\n1').catch((error) => [error.message]), ['NOT_STORED']);
}

// Answers that nobody waits for must not come: they would be taken for those of the next commands.
async function fireAndForget() {
  for (let i = 0; i < 100; ++i) {
    client.set(`mc:quiet:${i}`, `value ${i}`, { noreply: true });
  }
  const keys = Array.from({ length: 100 }, (_, i) => `mc:quiet:${i}`);
  const end = Date.now() + 3000;
  let found = {};
  while (Object.keys(found).length < 100 && Date.now() < end) {
    found = await client.get(keys);
  }
  keys.forEach((key, i) => assert.strictEqual(found[key].value, `value ${i}`));
}

async function manyAtOnce() {
  const keys = Array.from({ length: 300 }, (_, i) => `mc:many:${i}`);
  await Promise.all(keys.map((key, i) => client.set(key, `${i}`.repeat(i + 1))));
  const values = await Promise.all(keys.map((key) => client.get(key)));
  values.forEach((found, i) => assert.strictEqual(found.value, `${i}`.repeat(i + 1)));
}

async function kinds() {
  const bytes = Buffer.from(Array.from({ length: 70000 }, (_, i) => i % 256));
  await client.set('mc:bytes', bytes);
  assert.deepStrictEqual((await client.get('mc:bytes')).value, bytes);
  await client.set('mc:object', { list: [1, 2, 3] });
  assert.deepStrictEqual((await client.get('mc:object')).value, { list: [1, 2, 3] });
}

(async () => {
  await oneKey();
  await numbersAndRawCommands();
  await fireAndForget();
  await manyAtOnce();
  await kinds();
  client.shutdown();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
