-- The end of a pause or a suspension.
obj.spec.paused = false
obj.spec.suspend = false
return obj
