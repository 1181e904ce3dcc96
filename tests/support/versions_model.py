"""A table with a history as plain Python has it: every version of every key, and nothing that is ever thrown away."""

from __future__ import annotations

from dataclasses import dataclass, field

Put = tuple[str, int | None, int]
"""Key, value (None deletes) and time (ms)."""
Found = tuple[int, int, int | None]
"""Value, and from when to when it was valid; None: it is the newest."""


@dataclass
class Versions:
    """VersionedKeyValueStore, with `retention` in ms."""

    retention: int
    stream_time: int = -1
    dropped: int = 0
    of_key: dict[str, dict[int, int | None]] = field(default_factory=dict)

    def put(self, key: str, value: int | None, time: int) -> bool:
        """Whether the version was taken."""
        if time < self.stream_time - self.retention:
            self.dropped += 1
            return False
        self.stream_time = max(self.stream_time, time)
        self.of_key.setdefault(key, {})[time] = value
        return True

    def as_of(self, key: str, time: int) -> Found | None:
        """The version that was valid at `time`, as far as the history reaches back."""
        versions = self.of_key.get(key, {})
        before = [each for each in versions if each <= time]
        if not before:
            return None
        since = max(before)
        until = min((each for each in versions if each > since), default=None)
        value = versions[since]
        if value is None or (until is not None and time < self.stream_time - self.retention):
            return None
        return value, since, until

    def newest(self) -> dict[str, tuple[int, int]]:
        """Each key's newest value and its time, of those that have one."""
        last = {key: max(versions) for key, versions in self.of_key.items()}
        found = {key: (self.of_key[key][time], time) for key, time in last.items()}
        return {key: (value, time) for key, (value, time) in found.items() if value is not None}
