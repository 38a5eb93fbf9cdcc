// What ioredis and its descendant iovalkey are asked alike: single commands, pipelines, SCAN, big values.
'use strict';

const assert = require('node:assert');

async function keysOf(client, pattern) {
  const found = [];
  for await (const page of client.scanStream({ match: pattern, count: 20 })) {
    found.push(...page);
  }
  return found.sort();
}

async function structures(client) {
  assert.strictEqual(await client.hset('io:h', 'a', 1, 'b', 2), 2);
  assert.deepStrictEqual(await client.hgetall('io:h'), { a: '1', b: '2' });
  assert.strictEqual(await client.zadd('io:z', 1.5, 'm'), 1);
  assert.deepStrictEqual(await client.zrange('io:z', 0, -1, 'WITHSCORES'), ['m', '1.5']);
  assert.strictEqual(await client.rpush('io:l', 'x', 'y'), 2);
  assert.deepStrictEqual(await client.lrange('io:l', 0, -1), ['x', 'y']);
}

async function use(client, kind) {
  assert.strictEqual(await client.flushall(), 'OK');
  assert.strictEqual(await client.set('io:a', 'first', 'EX', 60), 'OK');
  assert.strictEqual(await client.get('io:a'), 'first');
  assert.strictEqual(await client.set('io:a', 'other', 'NX'), null);
  assert.strictEqual(await client.incrby('io:n', 5), 5);
  await assert.rejects(client.incr('io:a'), /not an integer/);

  const keys = Array.from({ length: 300 }, (_, i) => `io:many:${i}`);
  assert.strictEqual(await client.mset(...keys.flatMap((key, i) => [key, `value ${i}`])), 'OK');
  const values = keys.map((_, i) => `value ${i}`);
  assert.deepStrictEqual(await client.mget(...keys, 'io:none'), [...values, null]);
  assert.deepStrictEqual(await Promise.all(keys.map((key) => client.get(key))), values);
  const pipeline = client.pipeline();
  keys.forEach((key) => pipeline.get(key));
  assert.deepStrictEqual(await pipeline.exec(), values.map((value) => [null, value]));
  assert.deepStrictEqual(await keysOf(client, 'io:many:*'), [...keys].sort());
  assert.strictEqual(await client.del(...keys), 300);

  const bytes = Buffer.from(Array.from({ length: 800000 }, (_, i) => i % 256));
  assert.strictEqual(await client.set('io:big', bytes), 'OK');
  assert.ok((await client.getBuffer('io:big')).equals(bytes));
  if (kind === 'pool') {
    await structures(client);
  }
  await client.quit();
}

exports.run = (Client) => {
  const [, , port, kind] = process.argv;
  use(new Client(Number(port)), kind).catch((error) => {
    console.error(error);
    process.exit(1);
  });
};
