
-- Concurrency, as explained in lease.go.
--
-- A sorted set: the ids of requests, by the microsecond at which their lease is
-- over.

local function leases()
  local function digits(x) return string.format('%.0f', x) end -- `..` would round

  local function look(key, cost, most, length, _, _, _, _, id)
    local op = {key = key, cost = cost, length = length, id = id, held = 0, fits = false}
    if verb >= 2 then return op end
    local till = call('ZSCORE', key, id)
    op.held = call('ZCOUNT', key, '(' .. digits(now), '+inf')
    op.known = till and tonumber(till) > now and 0 or nil
    op.fits = op.known ~= nil or op.held < most
    return op
  end

  local function take(op, taken)
    if not taken then return end
    call('ZREMRANGEBYSCORE', op.key, '-inf', now)
    call('ZADD', op.key, now + op.length, op.id)
    local last = call('ZREVRANGE', op.key, 0, 0, 'WITHSCORES')
    call('PEXPIRE', op.key, life(tonumber(last[2]) - now))
    op.held = op.held + 1
  end

  local function settle(op) call('ZREM', op.key, op.id) end

  local function tell(op) return op.held, 0, 0, 0 end

  return {look = look, take = take, settle = settle, tell = tell}
end
