-- One decision on any number of limits: all are checked, then all enforced ones
-- are charged or none.
--
-- KEYS[i]  the bucket of op i; all in one slot, none twice
-- ARGV[1]  packed little-endian doubles, all whole numbers:
--            now     microseconds since 1970; below 0: the server's own TIME (tests bring theirs)
--            grace   milliseconds that a full bucket is kept, 1000 or more
--            charge  1 takes, 0 only looks
--          then for every op:
--            micro, period  the refill: micro-units every so many microseconds
--            burst, cost    units
--            shadow         1: refuses nobody
-- Output   packed little-endian doubles, for every op, after the step:
--            fits   1 or 0: its own cost fitted, whatever the others said
--            level  micro-units at the time of the last write
--            age    microseconds since then; below 0 while the clock is behind it
--          A bucket that is not there answers full, age 0.
--
-- A bucket is one string, "b" and five little-endian doubles: level, time,
-- micro, period, burst, the last three as they were when it was written. 41 bytes
-- are the most that Redis keeps in one piece with the key's object (44), and
-- nothing is printed or parsed: a double is exact up to 2^53, its decimal is not.
--
-- Reads come before writes, and what makes a write fail (READONLY, OOM, a full
-- disk) makes the first one fail, so a failed call has written nothing.
--
-- The arithmetic is bucket.go's, and explained there.

local UNIT = 1000000
local MAX = 9007199254740991 -- 2^53 - 1
local LONGEST = 126489600000000 -- microseconds of the longest period, MaxPeriod
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

local function held(b, now)
  local age = now - b.time
  if age <= 0 then return b.level end
  return b.level + math.min(muldiv(age, b.micro, b.period), b.burst * UNIT - b.level)
end

local function whole(x, least, most)
  return x >= least and x <= most and x == floor(x) -- false for NaN too
end

-- decode is nil for what is missing or no bucket: both are full.
local function decode(s)
  if not s or #s ~= 41 or s:byte(1) ~= 98 then return nil end
  local level, time, micro, period, burst = unpack('<ddddd', s, 2)
  if whole(micro, 1, 1e15) and whole(period, 1, LONGEST) and whole(burst, 0, 1e9)
    and whole(level, 0, burst * UNIT) and whole(time, 0, MAX) then
    return {level = level, time = time, micro = micro, period = period, burst = burst}
  end
end

-- adopt brings a stored bucket under the numbers of op; true when they changed.
local function adopt(b, op, now)
  local size = op.burst * UNIT
  if not b then
    return {level = size, time = now, micro = op.micro, period = op.period, burst = op.burst}, false
  end
  local level, changed = held(b, now), false
  if level == b.burst * UNIT then
    level = size
  elseif b.micro == op.micro and b.period == op.period and b.burst == op.burst then
    return b, false
  else
    level, changed = math.min(level, size), true
  end
  return {level = level, time = math.max(now, b.time), micro = op.micro, period = op.period, burst = op.burst}, changed
end

-- write keeps a bucket until it is full again and the grace is over. This time
-- may be rounded: the grace is far longer than a double's error.
local function write(key, b, now, grace)
  local fill = (b.burst * UNIT - b.level) / b.micro * b.period + (b.time - now)
  local ttl = math.min(math.ceil(fill / 1000) + grace, 9e12)
  redis.call('SET', key, pack('<c1ddddd', 'b', b.level, b.time, b.micro, b.period, b.burst),
    'PX', string.format('%.0f', ttl))
end

local now, grace, charge, at = unpack('<ddd', ARGV[1])
if now < 0 then
  local t = redis.call('TIME')
  now = tonumber(t[1]) * 1000000 + tonumber(t[2])
end

local ops, pass = {}, true
for i = 1, #KEYS do
  local op = {}
  op.micro, op.period, op.burst, op.cost, op.shadow, at = unpack('<ddddd', ARGV[1], at)
  op.bucket, op.changed = adopt(decode(redis.call('GET', KEYS[i])), op, now)
  op.held = held(op.bucket, now)
  op.fits = op.cost <= op.burst and op.held >= op.cost * UNIT
  if not op.fits and op.shadow == 0 then pass = false end
  ops[i] = op
end

local out = {}
for i = 1, #KEYS do
  local op, b = ops[i], ops[i].bucket
  if charge == 1 then
    local take = pass and op.fits
    if take then
      b.level = op.held - op.cost * UNIT
      b.time = math.max(now, b.time)
    end
    if take or op.changed then write(KEYS[i], b, now, grace) end
  end
  out[i] = pack('<ddd', op.fits and 1 or 0, b.level, now - b.time)
end
return table.concat(out)
