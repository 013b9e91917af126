-- What all kinds of limits share. This file and one for each kind come before
-- take.lua, and are one script with it: Redis keeps no libraries for EVALSHA. The
-- contract (KEYS, ARGV, output) is in take.lua.
--
-- A kind is a function that returns its steps, and makes them only when an op
-- wants them. Each takes an op: key, cost, shadow, and the numbers a to f as
-- take.lua lists them.
--
--   look(op)         reads the counter and brings it to now; sets op.fits. In a
--                    correction it sets nothing but the counter
--   take(op, taken)  writes what is charged (taken), or has new numbers
--   settle(op)       corrects what is there by op.cost, at the stamp op.d
--   tell(op)         four numbers for the output
--
-- Reads come before writes, and what makes a write fail (READONLY, OOM, a full
-- disk) makes the first one fail, so a failed call has written nothing.
--
-- A counter is one string: a byte that names its form, and little-endian
-- doubles. Nothing is printed or parsed: a double is exact up to 2^53, its
-- decimal is not. What is no such string counts as missing. Up to 41 bytes are
-- kept by Redis in one piece with the key's object.

local UNIT = 1000000
local MAX = 9007199254740991 -- 2^53 - 1
local LONGEST = 126489600000000 -- microseconds of the longest period, MaxPeriod
local REMEMBER = 60000000 -- microseconds, Remember
local floor = math.floor
local pack, unpack = struct.pack, struct.unpack

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
  return math.min(whole * b + part, MAX)
end

local function whole(x, least, most)
  return x >= least and x <= most and x == floor(x) -- false for NaN too
end

local mine, now, grace, verb, named, count, at = unpack('<dddddd', ARGV[1])
if now < 0 then
  local t = redis.call('TIME')
  now = tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- digits is the one way from a number to text: a whole number, exactly.
local function digits(x) return string.format('%.0f', x) end

-- life is the milliseconds that a key is kept which matters for some
-- microseconds more.
local function life(micros) return digits(math.min(math.ceil(micros / 1000) + grace, 9e12)) end
