
-- One step on any number of limits: a decision (all are checked, then all enforced
-- ones are charged or none), a correction, or the end of counters.
--
-- KEYS     the counter of each op; behind that of a quota whose op has an id, the
--          mark of this id; at the end, if the correction is named, its mark. All in
--          one slot, none twice
-- ARGV[1]  packed little-endian doubles, all whole numbers:
--            mine    the number of this call
--            now     microseconds since 1970; below 0: the server's own TIME (tests bring theirs)
--            grace   milliseconds that a key is kept which no longer matters, 1000 or more
--            verb    0 only looks, 1 takes, 2 settles, 3 resets (then no ops follow)
--            named   1: the correction has a name, and is made once
--            count   of ops
--          then for every op nine:
--            kind    as in op.go: 0 rate, 1 fixed, 2 sliding, 3 log, 4 quota, 5 concurrency, 6 retries
--            flags   1: shadow, refuses nobody; 2: has an id (a quota's)
--            cost    units; in a correction what is owed, or below 0 given back
--            a to f  rate, retries: micro and period of the refill, burst, reserve, the
--                      microseconds that an answer may be held, the units that are
--                      taken beside the cost as far as they are there
--                    windows, log: max, length; in a correction d is the stamp
--                    quota: max (below 0: unlimited), overage, four beginnings of
--                      periods; in a correction d is the stamp
--                    concurrency: max, length
-- ARGV[2]… the id of each lease, in the order of the ops
-- Output   packed little-endian doubles: mine, so that nobody takes it for another's;
--          for 0 and 1 now, and for every op, after the step:
--            fits    1 or 0: its own cost fitted, whatever the others said
--            four    rate, retries: level and time, and both as they were before it was charged
--                    windows: start, units in it, units in the one before, 0
--                    log: units counted, time of the newest, time of the one that must leave, 0
--                    quota: stamp, end of the period, units used, units over
--                    concurrency: leases held, 0, 0, 0
--          A bucket that is not there answers full.

local made = {}

local function steps(kind)
  local s = made[kind]
  if not s then
    if kind == 0 or kind == 6 then s = buckets() else s = other(kind) end
    made[kind] = s
  end
  return s
end

if verb == 3 then
  for i = 1, #KEYS do call('UNLINK', KEYS[i]) end
  return pack('<d', mine)
end
local marks = named == 1 and other()
if marks and marks.knows(call('GET', KEYS[#KEYS])) then return pack('<d', mine) end

local ops, pass, key, text = {}, true, 1, 2
for i = 1, count do
  local kind, flags, cost, a, b, c, d, e, f, id
  kind, flags, cost, a, b, c, d, e, f, at = unpack('<ddddddddd', ARGV[1], at)
  local name = KEYS[key]
  key = key + 1
  if flags >= 2 then
    id = KEYS[key]
    key = key + 1
  elseif kind == 5 then
    id = ARGV[text]
    text = text + 1
  end
  local s = steps(kind)
  local op = s.look(name, cost, a, b, c, d, e, f, id)
  op.kind, op.steps = kind, s
  if not op.fits and flags % 2 == 0 then pass = false end
  ops[i] = op
end

if verb == 2 then
  for i = 1, count do
    local op = ops[i]
    if op.cost ~= 0 or op.kind == 5 then op.steps.settle(op) end
  end
  if marks then marks.mark(KEYS[#KEYS], 0) end
  return pack('<d', mine)
end

local out = pack('<dd', mine, now)
for i = 1, count do
  local op = ops[i]
  if verb == 1 then
    op.steps.take(op, op.fits and not op.known and (pass or op.kind == 6))
  end
  out = out .. pack('<ddddd', op.fits and 1 or 0, op.steps.tell(op))
end
return out
