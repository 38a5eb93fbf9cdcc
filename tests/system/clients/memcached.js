// The npm package "memcached": hundreds of commands at once over several connections.
// Usage: node memcached.js PORT. Ends with status 0 when every answer was right.
'use strict';

const assert = require('node:assert');
const { promisify } = require('node:util');
const Memcached = require('memcached');

const client = new Memcached(`127.0.0.1:${process.argv[2]}`, { poolSize: 5, retries: 0, timeout: 4000 });
const call = (name, ...args) => promisify(client[name]).apply(client, args);

async function oneKey() {
  assert.strictEqual(await call('set', 'js:a', 'first', 60), true);
  assert.strictEqual(await call('get', 'js:a'), 'first');
  await assert.rejects(call('add', 'js:a', 'other', 60));
  assert.strictEqual(await call('replace', 'js:a', 'second', 60), true);
  assert.strictEqual(await call('append', 'js:a', '!'), true);
  assert.strictEqual(await call('prepend', 'js:a', '?'), true);
  const { cas } = await call('gets', 'js:a');
  assert.strictEqual(await call('cas', 'js:a', 'third', cas, 60), true);
  assert.strictEqual(await call('cas', 'js:a', 'fourth', cas, 60), false);
  assert.strictEqual(await call('touch', 'js:a', 60), true);
  assert.strictEqual(await call('get', 'js:a'), 'third');
  assert.strictEqual(await call('del', 'js:a'), true);
  assert.strictEqual(await call('get', 'js:a'), undefined);
}

async function numbers() {
  await call('set', 'js:n', '5', 60);
  assert.strictEqual(await call('incr', 'js:n', 10), 15);
  assert.strictEqual(await call('decr', 'js:n', 5), 10);
}

async function manyKeys() {
  const keys = Array.from({ length: 200 }, (_, i) => `js:many:${i}`);
  await Promise.all(keys.map((key, i) => call('set', key, `value ${i} ${'x'.repeat(i * 20)}`, 60)));
  const found = await call('getMulti', [...keys, 'js:nothing']);
  assert.strictEqual(Object.keys(found).length, 200);
  keys.forEach((key, i) => assert.strictEqual(found[key], `value ${i} ${'x'.repeat(i * 20)}`));
  const values = await Promise.all(keys.map((key) => call('get', key)));
  values.forEach((value, i) => assert.strictEqual(value, `value ${i} ${'x'.repeat(i * 20)}`));
}

async function kinds() {
  const bytes = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256));
  await call('set', 'js:bytes', bytes, 60);
  assert.deepStrictEqual(await call('get', 'js:bytes'), bytes);
  await call('set', 'js:object', { list: [1, 2, 3], text: 'ä€😀' }, 60);
  assert.deepStrictEqual(await call('get', 'js:object'), { list: [1, 2, 3], text: 'ä€😀' });
  const versions = await call('version');
  assert.match(versions[0].version, /^\d+\./);
}

(async () => {
  await oneKey();
  await numbers();
  await manyKeys();
  await kinds();
  client.end();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
