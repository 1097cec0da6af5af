"""What the process of a memory system gets of our environment: what it needs to run, and nobody's keys.

Vendors' packages read whatever variables they know, so a key of the user's that they were not given would be used, or
sent elsewhere, without a word. Proxies stay out too: a store is on this machine or where its settings say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "EIRKIT_HOME"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)
_LOCALE = "LC_"
_DIRECT = {"NO_PROXY": "*", "no_proxy": "*"}  # some systems know proxies that stand in no variable


def inherited_variables(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that a store's process may see.

    Args:
        more: those that the system itself says it needs, such as the password of its server.
    """
    wanted = {*_KEPT, *more}
    kept = {name: value for name, value in environment.items() if name in wanted or name.startswith(_LOCALE)}
    return {**kept, **_DIRECT}
