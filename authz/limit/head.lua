-- What all kinds of limits share. This file, bucket.lua, other.lua with the rest of
-- the kinds in it, and take.lua are one script: Redis keeps no libraries for
-- EVALSHA. The contract (KEYS, ARGV, output) is in take.lua.
--
-- A kind is a function that returns its steps:
--
--   look(key, cost, a, b, c, d, e, f, id)
--                    reads the counter, brings it to now, and returns the op: a
--                    table with whether it fits and what the other steps want. The
--                    numbers a to f are as take.lua lists them, and have names of
--                    their own in each kind
--   take(op, taken)  writes what is charged (taken), or has new numbers
--   settle(op)       corrects what is there by op.cost, at the stamp that d is then
--   tell(op)         four numbers for the output
--
-- Reads come before writes, and what makes a write fail (READONLY, OOM, a full
-- disk) makes the first one fail, so a failed call has written nothing.
--
-- A counter is one string: a byte that names its form, and little-endian
-- doubles. Nothing is printed or parsed: a double is exact up to 2^53, its
-- decimal is not. What is no such string counts as missing. Up to 41 bytes are
-- kept by Redis in one piece with the key's object.
--
-- All of it runs anew for each call, and there making a function costs as much as
-- calling a few, and a table that grows as much as reading a key. So what few
-- requests want is made when they want it, and an op has all its fields from the
-- start. kinds_timing_test.go measures it.

local UNIT = 1000000
local MAX = 9007199254740991 -- 2^53 - 1
local LONGEST = 126489600000000 -- microseconds of the longest period, MaxPeriod
local call, pack, unpack = redis.call, struct.pack, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local mine, now, grace, verb, named, count, at = unpack('<dddddd', ARGV[1])
if now < 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

-- long is floor(a*b/c) and the rest, for a < c and a product beyond 2^53, digit by
-- digit of b. Two terms below c*base must fit into 2^53, which gives the base;
-- it is 32 or more, as c is at most four years.
local function long(a, b, c, base)
  if b == 0 then return 0, 0 end
  local high = floor(b / base)
  local q, r = long(a, high, c, base)
  r = r * base + a * (b - high * base)
  local more = floor(r / c)
  return q * base + more, r - more * c
end

-- muldiv is floor(a*b/c), at most MAX. Below 2^53 the floor of a rounded quotient
-- is the exact one.
local function muldiv(a, b, c)
  local product = a * b
  if product <= MAX then return floor(product / c) end
  local whole = floor(a / c)
  if whole > floor(MAX / b) then return MAX end
  local part = long(a - whole * c, b, c, floor(4503599627370496 / c))
  return min(whole * b + part, MAX)
end

-- life is the milliseconds that a key is kept which matters for some
-- microseconds more. Redis prints such a number whole.
local function life(micros) return min(ceil(micros / 1000) + grace, 9e12) end
