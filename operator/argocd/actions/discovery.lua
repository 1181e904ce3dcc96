-- Which actions Argo CD offers for a StreamsApplication.
local spec = obj.spec
local gone = obj.metadata.deletionTimestamp ~= nil
local paused, suspended = spec.paused == true, spec.suspend == true
return {
  pause = {disabled = gone or paused or suspended, iconClass = "fa fa-fw fa-pause"},
  suspend = {disabled = gone or suspended, iconClass = "fa fa-fw fa-stop"},
  resume = {disabled = gone or not (paused or suspended), iconClass = "fa fa-fw fa-play"},
  restart = {disabled = gone, iconClass = "fa fa-fw fa-redo"},
}
