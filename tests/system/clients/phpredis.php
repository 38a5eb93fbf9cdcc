<?php
// PHP's extension "redis" (phpredis): single commands, pipelines, SCAN, big values.
// Usage: php phpredis.php PORT pool|store. Ends with status 0 when every answer was right.
declare(strict_types=1);

function same(mixed $got, mixed $wanted, string $what): void
{
    if ($got !== $wanted) {
        fprintf(STDERR, "%s: wanted %s, got %s\n", $what, var_export($wanted, true), var_export($got, true));
        exit(1);
    }
}

$client = new Redis();
same($client->connect('127.0.0.1', (int) $argv[1]), true, 'connect');
same($client->flushAll(), true, 'flushAll');
same($client->set('php:a', 'first', ['ex' => 60]), true, 'set');
same($client->get('php:a'), 'first', 'get');
same($client->set('php:a', 'other', ['nx']), false, 'set nx');
same($client->get('php:none'), false, 'get of nothing');
same($client->incrBy('php:n', 5), 5, 'incrBy');
same($client->append('php:n', '0'), 2, 'append');
same($client->exists('php:a', 'php:n', 'php:none'), 2, 'exists');

$items = [];
for ($i = 0; $i < 300; ++$i) {
    $items["php:many:$i"] = "value $i";
}
same($client->mSet($items), true, 'mSet');
same($client->mGet([...array_keys($items), 'php:none']), [...array_values($items), false], 'mGet');
$pipeline = $client->multi(Redis::PIPELINE);
foreach (array_keys($items) as $key) {
    $pipeline->get($key);
}
same($pipeline->exec(), array_values($items), 'pipeline');

$found = [];
$client->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
$cursor = null;
while ($page = $client->scan($cursor, 'php:many:*', 20)) {
    array_push($found, ...$page);
}
sort($found);
$keys = array_keys($items);
sort($keys);
same($found, $keys, 'scan');
same($client->del($keys), 300, 'del');

$big = str_repeat(implode('', array_map('chr', range(0, 255))), 3000);
same($client->set('php:big', $big), true, 'set of a big value');
same($client->get('php:big'), $big, 'a big value');

if ($argv[2] === 'pool') {
    same($client->hMSet('php:h', ['a' => '1', 'b' => '2']), true, 'hMSet');
    same($client->hGetAll('php:h'), ['a' => '1', 'b' => '2'], 'hGetAll');
    same($client->rPush('php:l', 'x', 'y'), 2, 'rPush');
    same($client->lRange('php:l', 0, -1), ['x', 'y'], 'lRange');
    same($client->zAdd('php:z', 1.5, 'm'), 1, 'zAdd');
    same($client->zRange('php:z', 0, -1, true), ['m' => 1.5], 'zRange');
}
