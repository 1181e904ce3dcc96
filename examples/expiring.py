"""A processor for expiring.yaml: carts that nobody has touched for an hour are forgotten."""

from datetime import timedelta

from streams_runtime import ProcessorContext, ProcessorRecord, PunctuationType

KEPT = timedelta(hours=1)


class Expiring:
    """Passes on every cart, and a tombstone for one that has had no record for an hour, by the records' times."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.touched = context.state_store("touched")
        context.schedule(timedelta(minutes=1), PunctuationType.STREAM_TIME, self.expire)

    def process(self, record: ProcessorRecord) -> None:
        if record.key is None:
            return
        if record.value is None:
            self.touched.delete(record.key)
        else:
            before = self.touched.get(record.key) or {"at": record.timestamp}
            self.touched.put(record.key, {"at": max(before["at"], record.timestamp)})
        self.context.forward(record.value)

    def expire(self, time: int) -> None:
        for key, row in self.touched.all():
            if row["at"] + KEPT // timedelta(milliseconds=1) <= time:
                self.touched.delete(key)
                self.context.forward(None, key=key)
