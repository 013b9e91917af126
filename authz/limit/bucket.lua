
-- Rate and retries: a token bucket, as explained in bucket.go.
--
-- "b", level, time, micro, period, burst: micro-units, which may be owed (below
-- 0), at the time of the last write, and the numbers as they were then.

local function buckets()
  local function held(b, when)
    local age = when - b.time
    if age <= 0 then return b.level end
    return b.level + math.min(muldiv(age, b.micro, b.period), b.burst * UNIT - b.level)
  end

  local function decode(s)
    if not s or #s ~= 41 or s:byte(1) ~= 98 then return nil end
    local level, time, micro, period, burst = unpack('<ddddd', s, 2)
    if whole(micro, 1, 1e15) and whole(period, 1, LONGEST) and whole(burst, 0, 1e9)
      and whole(level, -1e15, burst * UNIT) and whole(time, 0, MAX) then
      return {level = level, time = time, micro = micro, period = period, burst = burst}
    end
  end

  -- adopt brings a stored bucket under the numbers of op; true when they changed.
  local function adopt(b, op)
    local micro, period, burst = op.a, op.b, op.c
    local size = burst * UNIT
    if not b then
      return {level = size, time = now, micro = micro, period = period, burst = burst}, false
    end
    local level, changed = held(b, now), false
    if level == b.burst * UNIT then
      level = size
    elseif b.micro == micro and b.period == period and b.burst == burst then
      return b, false
    else
      level, changed = math.min(level, size), true
    end
    return {level = level, time = math.max(now, b.time), micro = micro, period = period, burst = burst}, changed
  end

  -- write keeps a bucket until it is full again and the grace is over. This time
  -- may be rounded: the grace is far longer than a double's error.
  local function write(key, b)
    local fill = (b.burst * UNIT - b.level) / b.micro * b.period + (b.time - now)
    redis.call('SET', key, pack('<c1ddddd', 'b', b.level, b.time, b.micro, b.period, b.burst), 'PX', life(fill))
  end

  local function look(op)
    op.bucket, op.changed = adopt(decode(redis.call('GET', op.key)), op)
    local b, need = op.bucket, (op.cost + op.d) * UNIT
    op.level, op.time, op.held = b.level, b.time, held(b, now)
    op.fits = op.cost + op.d <= op.c and held(b, now + op.e) >= need and op.held >= op.cost * UNIT - 1e15
  end

  local function take(op, taken)
    local b = op.bucket
    if taken then
      local share = 0
      if op.f > 0 then share = math.min(op.f, floor(op.held / UNIT) - op.cost - op.d) end
      b.level = op.held - (op.cost + share) * UNIT
      b.time = math.max(now, b.time)
    end
    if taken or op.changed then write(op.key, b) end
  end

  local function settle(op)
    local b = op.bucket
    if op.held == b.burst * UNIT and op.cost < 0 then return end -- full is full
    local level = math.min(math.max(op.held - op.cost * UNIT, -1e15), b.burst * UNIT)
    b.level, b.time = level, math.max(now, b.time)
    write(op.key, b)
  end

  -- tell adds the bucket as it was before, from which follows how long the answer
  -- is held.
  local function tell(op) return op.bucket.level, op.bucket.time, op.level, op.time end

  return {look = look, take = take, settle = settle, tell = tell}
end
