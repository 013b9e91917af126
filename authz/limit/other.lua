
-- The kinds of limits that fewer requests have than buckets, and what remembers the
-- names of charges. script.go puts window.lua, log.lua, mark.lua, quota.lua and
-- lease.lua where it says so. They are in one function, as each of them costs
-- requests that have none of them.

local function other(kind)
  local function whole(x, least, most)
    return x >= least and x <= most and x % 1 == 0 -- false for NaN too
  end

  -- the kinds

  if kind == 1 then return windows(false)
  elseif kind == 2 then return windows(true)
  elseif kind == 3 then return logs()
  elseif kind == 4 then return quotas()
  elseif kind == 5 then return leases()
  end
  return {knows = knows, mark = mark} -- of no kind
end
