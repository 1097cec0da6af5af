"""Selects the environment variables that the process of a memory system may see; keys are withheld.

Vendors' packages read any variable that they know, so they might use or send a key of the user without notice. Proxy
settings are withheld too: a store is on this machine or at the address in its settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "EIRKIT_HOME"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)
_LOCALE = "LC_"
_DIRECT = {"NO_PROXY": "*", "no_proxy": "*"}  # some systems find proxies outside the environment


def inherited_variables(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that a store's process may see.

    Args:
        more: variables that the system declares, such as the password of its server.
    """
    wanted = {*_KEPT, *more}
    kept = {name: value for name, value in environment.items() if name in wanted or name.startswith(_LOCALE)}
    return {**kept, **_DIRECT}
