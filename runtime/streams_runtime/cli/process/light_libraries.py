"""What a process with a client imports first: libraries without others that they load only because these are installed.

structlog and httpx load what draws on terminals, a sixth of a second of a processor; pyarrow loads pandas.
"""

from __future__ import annotations

from streams_runtime.spared_imports import absent, load_pyarrow_without_pandas

load_pyarrow_without_pandas()
with absent("rich"):
    import structlog
with absent("click"):  # of httpx's own command line, which takes rich too
    import httpx

__all__ = ["httpx", "structlog"]
