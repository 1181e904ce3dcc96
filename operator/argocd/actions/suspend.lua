-- All pods close; state and topics are kept.
obj.spec.suspend = true
return obj
