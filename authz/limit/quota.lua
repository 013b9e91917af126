
-- Quotas, as explained in quota.go.
--
-- "q", start, end, used, over: a period, and the units of it, overage included and
-- alone. Redis' clock is the store's, but it has no calendar: the caller sends
-- the beginnings of four periods, and the clock chooses.

local function quotas()
  local function decode(s)
    if not s or #s ~= 33 or s:byte(1) ~= 113 then return nil end
    local from, till, used, over = unpack('<dddd', s, 2)
    if whole(from, -MAX, MAX) and whole(till, from + 1, MAX) and whole(used, 0, MAX) and whole(over, 0, used) then
      return from, till, used, over
    end
  end

  local function write(op)
    call('SET', op.key, pack('<c1dddd', 'q', op.from, op.till, op.used, op.over), 'PX', life(max(0, op.till - now)))
  end

  -- period is that of now among the four that begin then.
  local function period(first, second, third, fourth)
    if now < first or now >= fourth then
      error('the clocks of Redis and of its caller are more than a period apart')
    elseif now < second then
      return first, second
    elseif now < third then
      return second, third
    end
    return third, fourth
  end

  -- extra is how much of some units would be overage; a max below 0 is no end.
  local function extra(op, units)
    if op.max < 0 then return 0 end
    return units - min(units, max(0, op.max - (op.used - op.over)))
  end

  -- look takes the stored period if that is newer than the one of now.
  local function look(key, cost, most, overage, first, second, third, fourth, id)
    local op = {key = key, cost = cost, max = most, overage = overage, stamp = second, id = id}
    op.from, op.till, op.used, op.over = decode(call('GET', key))
    if verb >= 2 then return op end
    local from, till = period(first, second, third, fourth)
    if not op.from or op.from < from then
      op.from, op.till, op.used, op.over = from, till, 0, 0
    end
    op.extra = extra(op, cost)
    op.fits = op.extra == 0 or op.over + op.extra <= overage
    if id then
      op.known = knows(call('GET', id))
      op.fits = op.fits or op.known ~= nil
    end
    return op
  end

  local function take(op, taken)
    if not taken then return end
    op.used = min(op.used + op.cost, MAX)
    op.over = min(op.over + op.extra, op.used)
    write(op)
    if op.id then mark(op.id, op.from) end
  end

  local function settle(op)
    local delta = op.cost
    if op.from ~= op.stamp then return end
    if delta >= 0 then
      op.over = op.over + min(extra(op, delta), max(0, op.overage - op.over))
      op.used = min(op.used + delta, MAX)
      op.over = min(op.over, op.used)
    else
      local back, past = min(-delta, op.used), 0
      if op.max >= 0 then past = min(back, max(0, op.used - op.over - op.max)) end
      op.over = op.over - min(back - past, op.over)
      op.used = op.used - back
    end
    write(op)
  end

  -- tell says under which stamp the units were counted, which for an id that is
  -- known may be an earlier period.
  local function tell(op) return op.known or op.from, op.till, op.used, op.over end

  return {look = look, take = take, settle = settle, tell = tell}
end
