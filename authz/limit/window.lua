
-- Fixed and sliding windows, as explained in window.go.
--
-- "w", start, length, count, last: when the window began, how long it is, the
-- units in it and in the one before.

local function windows(sliding)
  local function decode(s, length)
    if not s or #s ~= 33 or s:byte(1) ~= 119 then return nil end
    local start, stored, count, last = unpack('<dddd', s, 2)
    if stored == length and whole(start, 0, MAX) and whole(count, 0, MAX) and whole(last, 0, MAX) then
      return {start = start, count = count, last = last}
    end
  end

  -- roll is the window of now, or the stored one if that is newer.
  local function roll(w, length)
    local start = now - now % length
    if w and w.start >= start then return w end
    if w and w.start == start - length then return {start = start, count = 0, last = w.count} end
    return {start = start, count = 0, last = 0}
  end

  local function write(op, w)
    local ends = w.start + op.b
    if sliding then ends = ends + op.b end
    redis.call('SET', op.key, pack('<c1dddd', 'w', w.start, op.b, w.count, w.last), 'PX', life(ends - now))
  end

  local function look(op)
    local stored = decode(redis.call('GET', op.key), op.b)
    local w = roll(stored, op.b)
    local counted = w.count
    if sliding then
      counted = counted + w.last - muldiv(math.max(0, now - w.start), w.last, op.b)
    end
    op.window, op.stored = w, stored and stored.start
    op.fits = counted + op.cost <= op.a
  end

  local function take(op, taken)
    if not taken then return end
    op.window.count = op.window.count + op.cost
    write(op, op.window)
  end

  local function settle(op)
    local w = op.window
    if not op.stored or op.stored < op.d then return end
    if w.start == op.d then
      w.count = math.min(math.max(0, w.count + op.cost), MAX)
    elseif sliding and w.start - op.b == op.d then
      w.last = math.min(math.max(0, w.last + op.cost), MAX)
    else
      return
    end
    write(op, w)
  end

  local function tell(op) return op.window.start, op.window.count, op.window.last, 0 end

  return {look = look, take = take, settle = settle, tell = tell}
end
