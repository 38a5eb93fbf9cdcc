// The npm package "memjs", which speaks the binary protocol only.
// Usage: node memjs.js PORT [USER PASSWORD]. Ends with status 0 when every answer was right.
'use strict';

const assert = require('node:assert');
const memjs = require('memjs');

const [, , port, username, password] = process.argv;
const client = memjs.Client.create(`127.0.0.1:${port}`, { username, password, timeout: 4, retries: 0 });
const valueOf = async (key) => {
  const { value } = await client.get(key);
  return value === null ? null : value.toString();
};

async function oneKey() {
  assert.strictEqual(await client.set('mj:a', 'first', { expires: 60 }), true);
  assert.strictEqual(await valueOf('mj:a'), 'first');
  assert.strictEqual(await client.add('mj:a', 'other', {}), false);
  assert.strictEqual(await client.replace('mj:a', 'second', {}), true);
  assert.strictEqual(await client.append('mj:a', '!'), true);
  assert.strictEqual(await valueOf('mj:a'), 'second!');
  assert.strictEqual(await client.touch('mj:a', 60), true);
  assert.strictEqual(await client.delete('mj:a'), true);
  assert.strictEqual(await valueOf('mj:a'), null);
}

async function numbers() {
  const { value } = await client.increment('mj:n', 5, { initial: 10 });
  assert.strictEqual(Number(value), 10);
  assert.strictEqual(Number((await client.increment('mj:n', 5, {})).value), 15);
  assert.strictEqual(Number((await client.decrement('mj:n', 20, {})).value), 0);
}

async function manyAtOnce() {
  const keys = Array.from({ length: 200 }, (_, i) => `mj:many:${i}`);
  await Promise.all(keys.map((key, i) => client.set(key, `value ${i} ${'x'.repeat(i * 20)}`, {})));
  const values = await Promise.all(keys.map(valueOf));
  values.forEach((value, i) => assert.strictEqual(value, `value ${i} ${'x'.repeat(i * 20)}`));
}

async function kinds() {
  const bytes = Buffer.from(Array.from({ length: 300000 }, (_, i) => i % 256));
  assert.strictEqual(await client.set('mj:bytes', bytes, {}), true);
  assert.deepStrictEqual((await client.get('mj:bytes')).value, bytes);
}

(async () => {
  await oneKey();
  await numbers();
  await manyAtOnce();
  await kinds();
  await client.flush();
  assert.strictEqual(await valueOf('mj:n'), null);
  client.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
