# The gem "redis": single commands, pipelines, SCAN, big values.
# Usage: ruby redis.rb PORT pool|store. Ends with status 0 when every answer was right.
require 'redis'

def same(got, wanted, what)
  return if got == wanted

  warn "#{what}: wanted #{wanted.inspect[0, 300]}, got #{got.inspect[0, 300]}"
  exit 1
end

port, kind = ARGV
client = Redis.new(port: port.to_i)
same(client.flushall, 'OK', 'flushall')
same(client.set('rb:a', 'first', ex: 60), 'OK', 'set')
same(client.get('rb:a'), 'first', 'get')
same(client.set('rb:a', 'other', nx: true), false, 'set nx')
same(client.get('rb:none'), nil, 'get of nothing')
same(client.incrby('rb:n', 5), 5, 'incrby')

items = (0...300).to_h { |number| ["rb:many:#{number}", "value #{number}"] }
same(client.mset(*items.to_a.flatten), 'OK', 'mset')
same(client.mapped_mget(*items.keys, 'rb:none'), items.merge('rb:none' => nil), 'mapped_mget')
same(client.pipelined { |pipeline| items.each_key { |key| pipeline.get(key) } }, items.values, 'pipelined')
same(client.scan_each(match: 'rb:many:*', count: 20).to_a.uniq.sort, items.keys.sort, 'scan_each')
same(client.del(*items.keys), 300, 'del')

big = (0..255).to_a.pack('C*') * 3000
same(client.set('rb:big', big), 'OK', 'set of a big value')
same(client.get('rb:big').b, big, 'a big value')

begin
  client.incr('rb:a')
  same(true, false, 'incr of a text')
rescue Redis::CommandError => error
  same(error.message.sub(/ \(redis.*/, ''), 'ERR value is not an integer or out of range', 'its error')
end

if kind == 'pool'
  same(client.hset('rb:h', 'a', '1', 'b', '2'), 2, 'hset')
  same(client.hgetall('rb:h'), { 'a' => '1', 'b' => '2' }, 'hgetall')
  same(client.zadd('rb:z', 1.5, 'm'), true, 'zadd')
  same(client.zrange('rb:z', 0, -1, with_scores: true), [['m', 1.5]], 'zrange')
end
client.close
