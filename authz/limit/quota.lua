
-- Quotas, as explained in quota.go.
--
-- "q", start, end, used, over: a period, and the units of it, overage included and
-- alone. Redis' clock is the store's, but it has no calendar: the caller sends
-- the beginnings of four periods, and the clock chooses.
--
-- The mark of a request's id is a string of its own: "m", time, stamp.

local function knows(s)
  if not s or #s ~= 17 or s:byte(1) ~= 109 then return nil end
  local time, stamp = unpack('<dd', s, 2)
  if now - time < REMEMBER then return stamp end
end

local function mark(key, stamp)
  redis.call('SET', key, pack('<c1dd', 'm', now, stamp), 'PX', life(REMEMBER))
end

local function quotas()
  local function decode(s)
    if not s or #s ~= 33 or s:byte(1) ~= 113 then return nil end
    local from, till, used, over = unpack('<dddd', s, 2)
    if whole(from, -MAX, MAX) and whole(till, from + 1, MAX) and whole(used, 0, MAX) and whole(over, 0, used) then
      return {from = from, till = till, used = used, over = over}
    end
  end

  local function write(op, q)
    redis.call('SET', op.key, pack('<c1dddd', 'q', q.from, q.till, q.used, q.over), 'PX', life(math.max(0, q.till - now)))
  end

  -- roll is the period of now, or the stored one if that is newer.
  local function roll(q, op)
    local from, till = op.d, op.e
    if now < op.c or now >= op.f then
      error('the clocks of Redis and of its caller are more than a period apart')
    elseif now < op.d then
      from, till = op.c, op.d
    elseif now >= op.e then
      from, till = op.e, op.f
    end
    if q and q.from >= from then return q end
    return {from = from, till = till, used = 0, over = 0}
  end

  -- extra is how much of some units would be overage; a max below 0 is no end.
  local function extra(q, op, units)
    if op.a < 0 then return 0 end
    return units - math.min(units, math.max(0, op.a - (q.used - q.over)))
  end

  local function look(op)
    op.quota = decode(redis.call('GET', op.key))
    if verb >= 2 then return end
    op.quota = roll(op.quota, op)
    op.extra = extra(op.quota, op, op.cost)
    op.fits = op.extra == 0 or op.quota.over + op.extra <= op.b
    if op.mark then
      op.known = knows(redis.call('GET', op.mark))
      op.fits = op.fits or op.known ~= nil
    end
  end

  local function take(op, taken)
    if not taken then return end
    local q = op.quota
    q.used = math.min(q.used + op.cost, MAX)
    q.over = math.min(q.over + op.extra, q.used)
    write(op, q)
    if op.mark then mark(op.mark, q.from) end
  end

  local function settle(op)
    local q, delta = op.quota, op.cost
    if not q or q.from ~= op.d then return end
    if delta >= 0 then
      q.over = q.over + math.min(extra(q, op, delta), math.max(0, op.b - q.over))
      q.used = math.min(q.used + delta, MAX)
      q.over = math.min(q.over, q.used)
    else
      local back, past = math.min(-delta, q.used), 0
      if op.a >= 0 then past = math.min(back, math.max(0, q.used - q.over - op.a)) end
      q.over = q.over - math.min(back - past, q.over)
      q.used = q.used - back
    end
    write(op, q)
  end

  -- tell says under which stamp the units were counted, which for an id that is
  -- known may be an earlier period.
  local function tell(op)
    local q = op.quota
    return op.known or q.from, q.till, q.used, q.over
  end

  return {look = look, take = take, settle = settle, tell = tell}
end
