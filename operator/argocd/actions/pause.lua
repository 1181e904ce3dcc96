-- Pods stay and answer, and process nothing.
obj.spec.paused = true
return obj
