# The gem "dalli": the ordinary use of a Rails program. Usage: ruby dalli.rb PORT [USER PASSWORD]
# Ends with status 0 when every answer was right.
require "dalli"

def check(condition, what)
  abort "wrong: #{what}" unless condition
end

port, user, password = ARGV
options = { socket_timeout: 4, value_max_bytes: 4 * 1024 * 1024 }
options.update(username: user, password: password) if user
client = Dalli::Client.new("127.0.0.1:#{port}", options)

client.flush
check client.get("rb:a").nil?, "a flush leaves nothing"
check client.set("rb:a", { "list" => [1, 2, 3], "text" => "ä" }), "set"
check client.get("rb:a") == { "list" => [1, 2, 3], "text" => "ä" }, "get"
check !client.add("rb:a", 1), "add of what is there"
check client.add("rb:b", "new", 60), "add"
check client.replace("rb:b", "newer"), "replace"
client.replace("rb:none", "x")
check client.get("rb:none").nil?, "replace of what is not there"

check client.cas("rb:b") { |value| value + "!" }, "cas"
check client.get("rb:b") == "newer!", "what cas has stored"
lost = client.cas("rb:b") do |value|
  client.set("rb:b", "overtaken")
  value
end
check !lost && client.get("rb:b") == "overtaken", "a cas that comes too late"

check client.incr("rb:n", 5, 0, 10) == 10, "incr with an initial value"
check client.incr("rb:n", 5) == 15, "incr"
check client.decr("rb:n", 20) == 0, "decr stops at 0"
check client.incr("rb:none").nil?, "incr of what is not there"

many = (0...300).to_h { |number| ["rb:many:#{number}", "value #{number} " + "x" * number] }
client.multi { many.each { |key, value| client.set(key, value) } }
check client.get_multi(*many.keys, "rb:nothing") == many, "get_multi"

check client.set("rb:raw", "mid", 60, raw: true), "a raw set"
client.append("rb:raw", "end")
client.prepend("rb:raw", "start ")
check client.get("rb:raw") == "start midend", "append and prepend"
check client.touch("rb:raw", 100), "touch"
check client.gat("rb:raw", 100) == "start midend", "gat"

big = ("0".."9").to_a.join * 50_000
check client.set("rb:big", big, 0, raw: true) && client.get("rb:big") == big, "a large value"
check client.delete("rb:a") && !client.delete("rb:a"), "delete"
check client.stats.values.first["pid"], "stats"
check client.version.values.first, "version"
client.flush
check client.get("rb:b").nil? && client.get_multi(*many.keys).empty?, "flush"
client.close
