-- Puts a record in the place of what was there, all at once, and tells whoever
-- listens. Nobody sees a record that is half there.
--
-- KEYS[1]  the record
-- ARGV[1]  the channel of changes
-- ARGV[2]  what is told there
-- ARGV[3...]  names and values of its fields, by turns; none: the record is removed
-- Returns 1.

redis.call('DEL', KEYS[1])
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('PUBLISH', ARGV[1], ARGV[2])
return 1
