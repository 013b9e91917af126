
-- Concurrency, as explained in lease.go.
--
-- A sorted set: the ids of requests, by the microsecond at which their lease is
-- over.

local function leases()
  local function look(op)
    if verb >= 2 then return end
    local till = redis.call('ZSCORE', op.key, op.id)
    op.held = redis.call('ZCOUNT', op.key, '(' .. digits(now), '+inf')
    op.known = till and tonumber(till) > now and 0 or nil
    op.fits = op.known ~= nil or op.held < op.a
  end

  local function take(op, taken)
    if not taken then return end
    redis.call('ZREMRANGEBYSCORE', op.key, '-inf', digits(now))
    redis.call('ZADD', op.key, digits(now + op.b), op.id)
    local last = redis.call('ZREVRANGE', op.key, 0, 0, 'WITHSCORES')
    redis.call('PEXPIRE', op.key, life(tonumber(last[2]) - now))
    op.held = op.held + 1
  end

  local function settle(op) redis.call('ZREM', op.key, op.id) end

  local function tell(op) return op.held, 0, 0, 0 end

  return {look = look, take = take, settle = settle, tell = tell}
end
