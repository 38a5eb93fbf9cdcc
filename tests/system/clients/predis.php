<?php
// Predis, the client in plain PHP: single commands, pipelines, SCAN, big values.
// Usage: php predis.php PORT pool|store. Ends with status 0 when every answer was right.
declare(strict_types=1);

foreach (['Predis/Autoloader.php', 'Predis/autoload.php', 'php-nrk-Predis/autoload.php'] as $file) {
    if (stream_resolve_include_path($file) !== false) {
        require_once $file;
        break;
    }
}
if (class_exists('Predis\Autoloader')) {
    Predis\Autoloader::register();
}

function same(mixed $got, mixed $wanted, string $what): void
{
    if ($got !== $wanted) {
        fprintf(STDERR, "%s: wanted %s, got %s\n", $what, var_export($wanted, true), var_export($got, true));
        exit(1);
    }
}

$client = new Predis\Client(['host' => '127.0.0.1', 'port' => (int) $argv[1]]);
same((string) $client->flushall(), 'OK', 'flushall');
same((string) $client->set('pre:a', 'first', 'EX', 60), 'OK', 'set');
same($client->get('pre:a'), 'first', 'get');
same($client->get('pre:none'), null, 'get of nothing');
same($client->incrby('pre:n', 5), 5, 'incrby');

$items = [];
for ($i = 0; $i < 300; ++$i) {
    $items["pre:many:$i"] = "value $i";
}
same((string) $client->mset($items), 'OK', 'mset');
same($client->mget([...array_keys($items), 'pre:none']), [...array_values($items), null], 'mget');
$replies = $client->pipeline(function ($pipe) use ($items) {
    foreach (array_keys($items) as $key) {
        $pipe->get($key);
    }
});
same($replies, array_values($items), 'pipeline');

$found = iterator_to_array(new Predis\Collection\Iterator\Keyspace($client, 'pre:many:*', 20), false);
sort($found);
$keys = array_keys($items);
sort($keys);
same($found, $keys, 'scan');
same($client->del($keys), 300, 'del');

$big = str_repeat("0123456789\r\n", 60000);
same((string) $client->set('pre:big', $big), 'OK', 'set of a big value');
same($client->get('pre:big'), $big, 'a big value');

if ($argv[2] === 'pool') {
    same($client->hset('pre:h', 'a', '1'), 1, 'hset');
    same($client->hgetall('pre:h'), ['a' => '1'], 'hgetall');
    same($client->rpush('pre:l', ['x', 'y']), 2, 'rpush');
    same($client->lrange('pre:l', 0, -1), ['x', 'y'], 'lrange');
}
