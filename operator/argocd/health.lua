-- The health of a StreamsApplication in Argo CD, from its conditions (operator/CONDITIONS.md has every case).
-- Argo CD runs it with Lua 5.1 and the libraries base, table and os only.

local function health(status, message)
  return {status = status, message = message}
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "is being deleted: pods close in order")
end
local status = obj.status
if status == nil or status.conditions == nil or status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "waits for the operator to see the change")
end

local held = {}
for _, condition in ipairs(status.conditions) do
  held[condition.type] = condition
end

local function is_true(type)
  return held[type] ~= nil and held[type].status == "True"
end

local function has_reason(type, reason)
  return held[type] ~= nil and held[type].reason == reason
end

-- Closed, and nothing is left to do: a reset may be under way, late or refused.
local reset = is_true("Progressing") or has_reason("Progressing", "ProgressDeadlineExceeded")
  or has_reason("Degraded", "ResetRefused")
if is_true("Suspended") and not reset then
  return health("Suspended", held.Suspended.message)
end
if is_true("Degraded") then
  return health("Degraded", held.Degraded.reason .. ": " .. held.Degraded.message)
end
if has_reason("Progressing", "ReconciliationPaused") then
  return health("Suspended", held.Progressing.message)
end
if is_true("Paused") then
  return health("Suspended", held.Paused.message)
end
if is_true("Progressing") then
  return health("Progressing", held.Progressing.reason .. ": " .. held.Progressing.message)
end
if has_reason("Ready", "NoReplicas") then
  return health("Suspended", held.Ready.message)
end
if is_true("Ready") then
  return health("Healthy", held.Ready.message)
end
return health("Progressing", held.Ready and held.Ready.message or "has no condition Ready")
