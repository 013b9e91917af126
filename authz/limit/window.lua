
-- Fixed and sliding windows, as explained in window.go.
--
-- "w", start, length, count, last: when the window began, how long it is, the
-- units in it and in the one before.

local function windows(sliding)
  local function decode(s, length)
    if not s or #s ~= 33 or s:byte(1) ~= 119 then return nil end
    local start, stored, count, last = unpack('<dddd', s, 2)
    if stored == length and whole(start, 0, MAX) and whole(count, 0, MAX) and whole(last, 0, MAX) then
      return start, count, last
    end
  end

  -- look takes the stored window if that is newer than the one of now.
  local function look(key, cost, most, length, _, stamp)
    local stored, count, last = decode(call('GET', key), length)
    local start = now - now % length
    if not stored then
      count, last = 0, 0
    elseif stored >= start then
      start = stored
    elseif stored == start - length then
      count, last = 0, count
    else
      count, last = 0, 0
    end
    local counted = count
    if sliding then
      counted = counted + last - muldiv(max(0, now - start), last, length)
    end
    return {
      key = key, cost = cost, length = length, stamp = stamp, stored = stored,
      start = start, count = count, last = last, fits = counted + cost <= most,
    }
  end

  local function write(op)
    local ends = op.start + op.length
    if sliding then ends = ends + op.length end
    call('SET', op.key, pack('<c1dddd', 'w', op.start, op.length, op.count, op.last), 'PX', life(ends - now))
  end

  local function take(op, taken)
    if not taken then return end
    op.count = op.count + op.cost
    write(op)
  end

  local function settle(op)
    if not op.stored or op.stored < op.stamp then return end
    if op.start == op.stamp then
      op.count = min(max(0, op.count + op.cost), MAX)
    elseif sliding and op.start - op.length == op.stamp then
      op.last = min(max(0, op.last + op.cost), MAX)
    else
      return
    end
    write(op)
  end

  local function tell(op) return op.start, op.count, op.last, 0 end

  return {look = look, take = take, settle = settle, tell = tell}
end
