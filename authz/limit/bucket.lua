
-- Rate and retries: a token bucket, as explained in bucket.go.
--
-- "b", level, time, micro, period, burst: micro-units, which may be owed (below
-- 0), at the time of the last write, and the numbers as they were then.

local function buckets()
  -- held is what a bucket of some size holds, of which the level at a time is known.
  local function held(level, time, micro, period, size, at)
    local age = at - time
    if age <= 0 then return level end
    local more = muldiv(age, micro, period)
    if more >= size - level then return size end
    return level + more
  end

  -- decode answers nothing for what is no bucket: x % 1 is 0 for whole numbers only.
  local function decode(s)
    if not s or #s ~= 41 then return end
    local form, level, time, micro, period, burst = unpack('<Bddddd', s)
    if form == 98 and micro >= 1 and micro <= 1e15 and micro % 1 == 0
      and period >= 1 and period <= LONGEST and period % 1 == 0
      and burst >= 0 and burst <= 1e9 and burst % 1 == 0
      and level >= -1e15 and level <= burst * UNIT and level % 1 == 0
      and time >= 0 and time <= MAX and time % 1 == 0 then
      return level, time, micro, period, burst
    end
  end

  -- look brings a stored bucket under the numbers of the op. A bucket that is not
  -- there is full, and a full one stays full whatever its size becomes.
  local function look(key, cost, micro, period, burst, reserve, wait, share)
    local size = burst * UNIT
    local level, time, holds, changed = size, now, size, false
    local was, since, micro0, period0, burst0 = decode(call('GET', key))
    if was then
      holds = held(was, since, micro0, period0, burst0 * UNIT, now)
      if holds == burst0 * UNIT then
        holds, time = size, max(now, since)
      elseif micro0 == micro and period0 == period and burst0 == burst then
        level, time = was, since
      else
        holds, time, changed = min(holds, size), max(now, since), true
        level = holds
      end
    end
    local lent, need = holds, cost + reserve
    if wait > 0 then lent = held(level, time, micro, period, size, now + wait) end
    return {
      key = key, cost = cost, micro = micro, period = period, burst = burst, reserve = reserve, share = share,
      level = level, time = time, was = level, since = time, holds = holds, changed = changed,
      fits = need <= burst and lent >= need * UNIT and holds >= cost * UNIT - 1e15,
    }
  end

  -- write keeps a bucket until it is full again and the grace is over. This time
  -- may be rounded: the grace is far longer than a double's error.
  local function write(op)
    local fill = (op.burst * UNIT - op.level) / op.micro * op.period + (op.time - now)
    call('SET', op.key, pack('<c1ddddd', 'b', op.level, op.time, op.micro, op.period, op.burst), 'PX', life(fill))
  end

  local function take(op, taken)
    if taken then
      local share = 0
      if op.share > 0 then share = min(op.share, floor(op.holds / UNIT) - op.cost - op.reserve) end
      op.level = op.holds - (op.cost + share) * UNIT
      op.time = max(now, op.time)
    end
    if taken or op.changed then write(op) end
  end

  local function settle(op)
    local size = op.burst * UNIT
    if op.holds == size and op.cost < 0 then return end -- full is full
    op.level = min(max(op.holds - op.cost * UNIT, -1e15), size)
    op.time = max(now, op.time)
    write(op)
  end

  -- tell adds the bucket as it was before, from which follows how long the answer
  -- is held.
  local function tell(op) return op.level, op.time, op.was, op.since end

  return {look = look, take = take, settle = settle, tell = tell}
end
