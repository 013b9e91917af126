
-- Log windows, as explained in logbook.go.
--
-- "l", length, time, base: how long the window is, when it was last charged, what
-- had been counted before the first record. Then, for each time when something
-- was counted, a record of two doubles: the time, and the total until then.
-- Only the records that a search needs are read.

local function logs()
  local HEAD, SIZE, TRIM = 25, 16, 32

  -- open reads the head. A log that is none, or of another length, is empty.
  local function open(key, length)
    local l = {count = 0, time = 0, base = 0, key = key}
    local head, size = call('GETRANGE', key, 0, HEAD - 1), call('STRLEN', key)
    if #head ~= HEAD or head:byte(1) ~= 108 or (size - HEAD) % SIZE ~= 0 then return l end
    local stored, time, base = unpack('<ddd', head, 2)
    if stored ~= length or not whole(time, 0, MAX) or not whole(base, 0, MAX) then return l end
    return {count = (size - HEAD) / SIZE, time = time, base = base, key = key, there = true}
  end

  local function range(l, first, last)
    return call('GETRANGE', l.key, HEAD + (first - 1) * SIZE, HEAD + last * SIZE - 1)
  end

  -- record is the time and the total of record i, from 1.
  local function record(l, i)
    if i == 0 then return 0, l.base end
    return unpack('<dd', range(l, i, i))
  end

  -- find is the first record of low..count for which yes holds, as it does for all
  -- after it; count + 1 if there is none.
  local function find(l, low, yes)
    local high = l.count + 1
    while low < high do
      local middle = floor((low + high) / 2)
      if yes(record(l, middle)) then high = middle else low = middle + 1 end
    end
    return low
  end

  local function head(op, l) return pack('<c1ddd', 'l', op.length, l.time, l.base) end

  local function look(key, cost, most, length, _, stamp)
    local l = open(key, length)
    local op = {key = key, cost = cost, length = length, stamp = stamp, log = l, counted = 0, newest = 0, leaves = 0}
    local edge = max(now, l.time) - length
    l.first = find(l, 1, function(time) return time > edge end)
    local _, before = record(l, l.first - 1)
    if l.first <= l.count then
      op.newest, l.total = record(l, l.count)
      op.counted = l.total - before
    else
      _, l.total = record(l, l.count)
    end
    l.before = before
    op.fits = op.counted + cost <= most
    if verb < 2 and not op.fits and cost <= most then
      local room = most - cost
      local i = find(l, l.first, function(_, total) return l.total - total <= room end)
      op.leaves = record(l, i)
    end
    return op
  end

  local function take(op, taken)
    if not taken then return end
    local l = op.log
    l.time = max(now, l.time)
    local new = pack('<dd', l.time, l.total + op.cost)
    if not l.there or l.first - 1 > l.count - l.first + 1 + TRIM then
      l.base = l.before
      local kept = l.first <= l.count and range(l, l.first, l.count) or ''
      if op.newest == l.time and kept ~= '' then kept = kept:sub(1, -SIZE - 1) end
      call('SET', op.key, head(op, l) .. kept .. new)
    else
      call('SETRANGE', op.key, 0, head(op, l))
      if op.newest == l.time then
        call('SETRANGE', op.key, HEAD + (l.count - 1) * SIZE, new)
      else
        call('APPEND', op.key, new)
      end
    end
    call('PEXPIRE', op.key, life(l.time + op.length - now))
    op.counted, op.newest = op.counted + op.cost, l.time
  end

  local function settle(op)
    local l, stamp = op.log, op.stamp
    local i = find(l, l.first, function(time) return time >= stamp end)
    if i > l.count or record(l, i) ~= stamp then return end
    local _, before = record(l, i - 1)
    local _, total = record(l, i)
    local delta = max(op.cost, before - total)
    local rest, out = range(l, i, l.count), {}
    for at = 1, #rest, SIZE do
      local time, total = unpack('<dd', rest, at)
      out[#out + 1] = pack('<dd', time, total + delta)
    end
    if total + delta > before then
      call('SETRANGE', op.key, HEAD + (i - 1) * SIZE, table.concat(out))
    else
      local kept = call('GETRANGE', op.key, 0, HEAD + (i - 1) * SIZE - 1)
      call('SET', op.key, kept .. table.concat(out, '', 2), 'KEEPTTL')
    end
  end

  local function tell(op) return op.counted, op.newest, op.leaves, 0 end

  return {look = look, take = take, settle = settle, tell = tell}
end
