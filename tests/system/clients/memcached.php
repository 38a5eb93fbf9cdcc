<?php
// PHP's extension "memcached" (over libmemcached): single keys, counters, cas, wide gets, delayed gets, quiet and buffered writes, many sizes.
// Usage: php memcached.php PORT. Ends with status 0 when every answer was right.
declare(strict_types=1);

$client = new Memcached();
$client->setOptions([
    Memcached::OPT_BINARY_PROTOCOL => false,
    Memcached::OPT_TCP_NODELAY => true,
    Memcached::OPT_CONNECT_TIMEOUT => 4000,
    Memcached::OPT_POLL_TIMEOUT => 4000,
]);
$client->addServer('127.0.0.1', (int) $argv[1]);

function same(mixed $got, mixed $wanted, string $what): void
{
    global $client;
    if ($got !== $wanted) {
        fprintf(STDERR, "%s: wanted %s, got %s (%s)\n", $what, var_export($wanted, true), var_export($got, true), $client->getResultMessage());
        exit(1);
    }
}

function one_key(Memcached $client): void
{
    same($client->set('php:a', 'first', 60), true, 'set');
    same($client->get('php:a'), 'first', 'get');
    same($client->add('php:a', 'other', 60), false, 'add over an item');
    same($client->getResultCode(), Memcached::RES_NOTSTORED, 'its code');
    same($client->replace('php:a', 'second', 60), true, 'replace');
    $client->setOption(Memcached::OPT_COMPRESSION, false);
    same($client->append('php:a', '!'), true, 'append');
    same($client->prepend('php:a', '?'), true, 'prepend');
    same($client->get('php:a'), '?second!', 'both');
    $extended = $client->get('php:a', null, Memcached::GET_EXTENDED);
    same($client->cas($extended['cas'], 'php:a', 'third', 60), true, 'cas');
    same($client->cas($extended['cas'], 'php:a', 'fourth', 60), false, 'cas that is old');
    same($client->getResultCode(), Memcached::RES_DATA_EXISTS, 'its code');
    same($client->touch('php:a', 60), true, 'touch');
    same($client->delete('php:a'), true, 'delete');
    same($client->delete('php:a'), false, 'delete without an item');
    same($client->getResultCode(), Memcached::RES_NOTFOUND, 'its code');
    same($client->get('php:a'), false, 'get without an item');
    same($client->getResultCode(), Memcached::RES_NOTFOUND, 'its code');
}

function numbers(Memcached $client): void
{
    same($client->set('php:n', 5, 60), true, 'set of a number');
    same($client->increment('php:n', 10), 15, 'increment');
    same($client->decrement('php:n', 5), 10, 'decrement');
    same($client->increment('php:none'), false, 'increment without an item');
}

function many_keys(Memcached $client): void
{
    $items = [];
    for ($i = 0; $i < 300; ++$i) {
        $items["php:many:$i"] = "value $i " . str_repeat('x', $i * 20);
    }
    same($client->setMulti($items, 60), true, 'setMulti');
    same($client->getMulti([...array_keys($items), 'php:nothing'], Memcached::GET_PRESERVE_ORDER), $items + ['php:nothing' => null], 'getMulti');
    same($client->getDelayed(array_keys($items), true), true, 'getDelayed');
    $fetched = [];
    while ($item = $client->fetch()) {
        $fetched[$item['key']] = $item['value'];
    }
    ksort($fetched);
    ksort($items);
    same($fetched, $items, 'what was fetched');
    same(array_unique($client->deleteMulti(array_keys($items))), ['php:many:0' => true], 'deleteMulti');
    same($client->getMulti(array_keys($items)), [], 'getMulti afterwards');
}

function quiet(int $port): void
{
    // Options of this kind open the connection anew, so the quiet client keeps them to its end.
    $client = new Memcached();
    $client->setOptions([Memcached::OPT_NOREPLY => true, Memcached::OPT_BUFFER_WRITES => true, Memcached::OPT_POLL_TIMEOUT => 4000]);
    $client->addServer('127.0.0.1', $port);
    for ($i = 0; $i < 200; ++$i) {
        $client->set("php:quiet:$i", (string) $i, 60);
    }
    same($client->flushBuffers(), true, 'flushBuffers');
    same($client->get('php:quiet:199'), '199', 'the last of the quiet ones');
    same($client->get('php:quiet:0'), '0', 'the first of the quiet ones');
}

function kinds(Memcached $client): void
{
    $bytes = implode('', array_map('chr', range(0, 255)));
    same($client->set('php:bytes', str_repeat($bytes, 2000), 60), true, 'set of half a megabyte');
    same($client->get('php:bytes'), str_repeat($bytes, 2000), 'half a megabyte');
    $object = ['list' => [1, 2, 3], 'text' => 'ä€😀', 'float' => 1.5, 'flag' => true];
    same($client->set('php:object', $object, 60), true, 'set of an array');
    same($client->get('php:object'), $object, 'an array');
    $client->setOption(Memcached::OPT_COMPRESSION, true);
    same($client->set('php:zip', str_repeat('abc', 10000), 60), true, 'set of something compressed');
    same($client->get('php:zip'), str_repeat('abc', 10000), 'something compressed');
    same(preg_match('/^\d+\./', array_values($client->getVersion())[0]), 1, 'version');
}

one_key($client);
numbers($client);
many_keys($client);
quiet((int) $argv[1]);
kinds($client);
