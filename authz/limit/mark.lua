
-- The mark of an id, which tells what has been done for it: "m", time, stamp.

local REMEMBER = 60000000 -- microseconds, Remember

local function knows(s)
  if not s or #s ~= 17 or s:byte(1) ~= 109 then return nil end
  local time, stamp = unpack('<dd', s, 2)
  if now - time < REMEMBER then return stamp end
end

local function mark(key, stamp)
  call('SET', key, pack('<c1dd', 'm', now, stamp), 'PX', life(REMEMBER))
end
