"""Keys and values of a processor's store as their bytes, and what is said of those of other types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams_runtime.errors import ProcessorStateException
from streams_runtime.processors.user_processors.declared_types import ValueCodec
from streams_runtime.processors.user_processors.processor_call import CurrentCall
from streams_runtime.state.serdes import Serde, SerdeException


class StoredForms:
    """Those of one store."""

    def __init__(self, name: str, key_format: str, keys: Serde, values: ValueCodec) -> None:
        self.name, self.key_format = name, key_format
        self._keys, self._values = keys, values

    def key_bytes(self, key: Any) -> bytes:
        """A key's bytes. Raises TypeError: it is not of the declared type."""
        if key is None:
            raise TypeError(f"the store {self.name!r} has no key None")
        try:
            return self._keys.encode(key)
        except SerdeException as error:
            raise TypeError(f"a key of the store {self.name!r}: {error}") from None

    def key(self, data: bytes) -> Any:
        """The key of its bytes."""
        return self._keys.decode(data)

    def value_bytes(self, value: Mapping[str, Any]) -> bytes:
        """A value's bytes. Raises ValueError: it is not of the declared type."""
        try:
            return self._values.encode(value)
        except (ValueError, TypeError, OverflowError) as error:  # those of Arrow are among them
            raise ValueError(
                f"a value of the store {self.name!r} is not of its declared type: {_line(error)}"
            ) from None

    def value(self, data: bytes | None) -> Any:
        """The value of its bytes; None of none. Raises ProcessorStateException: they are of another type."""
        if data is None:
            return None
        try:
            return self._values.decode(data)
        except (ValueError, TypeError) as error:
            raise ProcessorStateException(
                f"store {self.name} has a value that is not of its declared type: {_line(error)}. It was written under"
                " another type: declare that, or give the store another name"
            ) from error

    def during(self, current: CurrentCall, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        """The pairs, in the call that asks: behind it the batch may end, and the store may be another one."""
        call = current.now

        def shown() -> Iterator[tuple[bytes, bytes]]:
            while True:
                if current.now is not call:
                    raise RuntimeError(
                        f"an iterator of the store {self.name!r} is for the call of process, or of a punctuator, that"
                        " asked for it; ask for another one"
                    )
                if (pair := next(pairs, None)) is None:
                    return
                yield pair

        return shown()


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
