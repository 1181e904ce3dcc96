-- Every pod is replaced: those in ERROR at once, running ones one by one.
obj.spec.restartNonce = (obj.spec.restartNonce or 0) + 1
return obj
