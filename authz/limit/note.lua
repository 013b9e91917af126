-- Writes or removes a note, and lets what is kept of a tenant live as long as its
-- longest note.
--
-- KEYS[1]  the tenant's notes, a hash: id -> text
-- ARGV[1]  the id
-- ARGV[2]  the text; empty: remove it
-- ARGV[3]  when the note may be thrown away, milliseconds since 1970
-- Returns 1 when there was such a note before, else 0.

local before = redis.call('HEXISTS', KEYS[1], ARGV[1])
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return before
end
local left = redis.call('PTTL', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local time = redis.call('TIME')
local wanted = tonumber(ARGV[3]) - time[1] * 1000
if left < wanted then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
return before
