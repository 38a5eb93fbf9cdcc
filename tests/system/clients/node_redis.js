// The npm package "redis": single commands, pipelines, SCAN, big values, in both versions of the protocol.
// Usage: node node_redis.js PORT pool|store. Ends with status 0 when every answer was right.
'use strict';

const assert = require('node:assert');
const { createClient, RESP_TYPES } = require('redis');

const [, , port, kind] = process.argv;

async function use(client) {
  await client.connect();
  assert.strictEqual(await client.flushAll(), 'OK');
  assert.strictEqual(await client.set('nr:a', 'first', { EX: 60 }), 'OK');
  assert.strictEqual(await client.get('nr:a'), 'first');
  assert.strictEqual(await client.get('nr:none'), null);
  assert.strictEqual(await client.incrBy('nr:n', 5), 5);
  await assert.rejects(client.incr('nr:a'), /not an integer/);

  const keys = Array.from({ length: 300 }, (_, i) => `nr:many:${i}`);
  const values = keys.map((_, i) => `value ${i}`);
  assert.strictEqual(await client.mSet(keys.map((key, i) => [key, values[i]])), 'OK');
  assert.deepStrictEqual(await client.mGet([...keys, 'nr:none']), [...values, null]);
  assert.deepStrictEqual(await Promise.all(keys.map((key) => client.get(key))), values);
  const pipeline = client.multi();
  keys.forEach((key) => pipeline.get(key));
  assert.deepStrictEqual(await pipeline.execAsPipeline(), values);
  const found = [];
  for await (const page of client.scanIterator({ MATCH: 'nr:many:*', COUNT: 20 })) {
    found.push(...page);
  }
  assert.deepStrictEqual(found.sort(), [...keys].sort());
  assert.strictEqual(await client.del(keys), 300);

  const bytes = Buffer.from(Array.from({ length: 800000 }, (_, i) => i % 256));
  assert.strictEqual(await client.set('nr:big', bytes), 'OK');
  const raw = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  assert.ok((await raw.get('nr:big')).equals(bytes));
  if (kind === 'pool') {
    assert.strictEqual(await client.hSet('nr:h', { a: '1', b: '2' }), 2);
    assert.deepStrictEqual({ ...(await client.hGetAll('nr:h')) }, { a: '1', b: '2' });
    assert.strictEqual(await client.zAdd('nr:z', { score: 1.5, value: 'm' }), 1);
    assert.deepStrictEqual(await client.zRangeWithScores('nr:z', 0, -1), [{ value: 'm', score: 1.5 }]);
  }
  await client.close();
}

(async () => {
  for (const RESP of [2, 3]) {
    const client = createClient({ socket: { port: Number(port), host: '127.0.0.1' }, RESP });
    client.on('error', (error) => {
      console.error(error);
      process.exit(1);
    });
    await use(client);
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
