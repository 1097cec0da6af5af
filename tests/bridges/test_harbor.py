"""Tasks for Harbor: what is in the folders and what is not, and whole trials of them on loopback."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit_bridges.episode import UNKNOWN_USAGE
from eirkit_bridges.harbor import export_harbor
from eirkit_bridges.mcp_server import LARGEST_REQUEST
from eirkit_bridges.sidecar import SidecarPlan
from tests.bridges.driving import SEED, Saying, native, needs_mcp, stored_runs, suite_of, telemetry
from tests.bridges.harbor_local import Trial
from tests.lacuna.running import eirkit
from tests.processes import completed

ROOT = Path(__file__).parents[2]
HARBOR = Path(os.environ.get("EIRKIT_HARBOR_PYTHON", ROOT / ".venv" / "harbor" / "bin" / "python"))
needs_harbor = pytest.mark.skipif(not HARBOR.exists(), reason="Harbor is not installed; make session NAME=harbor")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
STRANGER = 54_321  # a user id that nobody has
TASK = {"workload": "store-recall", "n": 6, "m": 4, "digits": 9}
CONTROLLED = {**TASK, "condition": "controlled", "h": 2}


def draw(size: int) -> bytes:
    return os.urandom(size)


def exported(folder: Path, **keys: Any) -> Path:
    (task,) = export_harbor(suite_of(**{**TASK, **keys}), folder / "tasks", draw)
    return task.folder


def instance(**keys: Any) -> TaskInstance:
    return generate(TaskSpec(seed=SEED, **{**TASK, **keys}))


@pytest.fixture
def managed(tmp_path) -> Iterator[Trial]:
    with Trial(exported(tmp_path, h=2, condition="kv", b_oracle=2), tmp_path / "trial") as trial:
        yield trial


def test_a_folder_has_what_harbor_asks_for(tmp_path):
    task = exported(tmp_path)
    files = {str(path.relative_to(task)) for path in task.rglob("*") if path.is_file()}
    assert files == {
        *("task.toml", "instruction.md", "environment/Dockerfile", "environment/docker-compose.yaml"),
        *("environment/.dockerignore", "environment/episode/Dockerfile", "environment/episode/requirements.txt"),
        *("environment/episode/episode.json", "solution/solve.sh", "solution/answers.txt"),
        *("tests/test.sh", "tests/Dockerfile"),
    }
    description = tomllib.loads((task / "task.toml").read_text())
    assert description["schema_version"] == "1.4"
    assert description["task"]["name"] == f"eirkit/{task.name}"
    assert os.access(task / "tests" / "test.sh", os.X_OK)


@pytest.mark.parametrize("keys", [TASK, CONTROLLED], ids=["managed", "controlled"])
def test_what_the_agent_gets_holds_neither_seed_nor_anything_of_the_task(tmp_path, keys):
    task = exported(tmp_path, **keys)
    secret = [path for path in task.rglob("*") if {"episode", "solution"} & set(path.relative_to(task).parts[:2])]
    reach = [path for path in task.rglob("*") if path.is_file() and path not in secret and path.parts[-2] != "episode"]
    texts = "\n".join([str(path.relative_to(task)) + path.read_text() for path in reach])
    values = [value for step in instance().steps for value in (*step.answer, *(step.input or ()))]
    assert [value for value in values if str(value) in texts] == []
    assert str(SEED) not in texts
    plan = json.loads((task / "environment" / "episode" / "episode.json").read_text())
    assert plan["admin"] not in texts
    assert "COPY" not in (task / "environment" / "Dockerfile").read_text()
    for t, key in enumerate(plan["keys"], 1):
        holding = [path for path in reach if key in path.read_text()]
        assert holding == [task / "steps" / f"step-{t:03d}" / "workdir" / "setup.sh"]


def test_two_exports_share_no_token(tmp_path):
    first, second = (
        json.loads((exported(tmp_path / name) / "environment/episode/episode.json").read_text()) for name in "ab"
    )
    assert first["suite"] == second["suite"]
    assert {first["token"], first["admin"]} & {second["token"], second["admin"]} == set()


def test_a_suite_becomes_a_folder_for_each_run(tmp_path, capsys):
    suite = tmp_path / "suite.toml"
    suite.write_text(
        'workload = "store-recall"\nmodel = "reference/calculator"\nn = 4\nseeds = "0:2"\n'
        '[[grid]]\nh = [1, 2]\n[[grid]]\ncondition = "lru"\nb_oracle = 3\n'
    )
    assert eirkit("export", "harbor", str(suite), "--out", str(tmp_path / "tasks"), "--json") == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    assert [(task["mode"], task["seed"]) for task in tasks] == [
        *(("controlled", seed) for seed in (0, 1, 0, 1)),
        *(("managed", seed) for seed in (0, 1)),
    ]
    for task in tasks:
        plan = SidecarPlan.read(Path(task["folder"]) / "environment" / "episode")
        ((cell, seeds),) = read_suite(plan.suite).plan()
        assert cell.run_id(seeds[0]) == task["run"]


def test_random_seeds_are_as_many_as_asked(tmp_path, capsys):
    options = ("--workload", "store-recall", "--n", "4", "--instances", "3", "--out", str(tmp_path / "x"), "--json")
    assert eirkit("export", "harbor", *options) == 0
    seeds = {task["seed"] for task in json.loads(capsys.readouterr().out)["tasks"]}
    assert len(seeds) == 3
    assert min(seeds) > 1000  # the chance that an honest draw is below is 2^-53


def test_a_wheel_goes_into_the_image(tmp_path):
    wheel = tmp_path / "eirkit-9.9-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    (task,) = export_harbor(suite_of(), tmp_path / "tasks", draw, str(wheel))
    episode = task.folder / "environment" / "episode"
    assert (episode / "requirements.txt").read_text() == "./eirkit-9.9-py3-none-any.whl[mcp]\n"
    assert (episode / wheel.name).read_bytes() == b"wheel"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to export"),
        (("--workload", "store-recall", "--install", "no.whl"), "there is no wheel no.whl"),
        (("--workload", "store-recall", "--seeds", "1", "--instances", "2"), "give one of the two"),
        (("--workload", "store-recall", "--condition", "controlled", "--n", "1000"), "too many sessions"),
        (("--workload", "store-recall", "--seeds", "0:10001"), "too many folders"),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(tmp_path, capsys, arguments, words):
    assert eirkit("export", "harbor", *arguments, "--out", str(tmp_path / "tasks")) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "tasks").exists()


def test_a_folder_in_use_and_a_broken_plan_are_refused(tmp_path):
    exported(tmp_path)
    with pytest.raises(UsageError, match="is not an empty folder"):
        exported(tmp_path)
    with pytest.raises(InputFileError, match="holds no task"):
        SidecarPlan.read(tmp_path)


@needs_mcp
def test_the_oracle_gets_everything(managed):
    assert managed.in_service("healthy").returncode == 0
    managed.solve()
    assert json.loads(managed.in_service("settle").stdout)["reward"] == 1.0
    assert managed.verify() == {"reward": 1.0, "correct": 6, "scored": 6, "answered": 6}
    (run,) = stored_runs(managed.episode / "out")
    assert (run.ending, run.setting.model) == ("finished", "agent/visitor")


@needs_mcp
def test_a_partial_submission_gets_its_part(managed):
    steps = instance().steps
    for step in steps[:4]:
        managed.post("act", "NEXT")
        wrong = step.t == 2
        managed.post("act", f"ANSWER {step.t} {step.answer[0] if not wrong else (step.answer[0] + 1) % 10**9}")
    assert managed.verify() == {"reward": 3 / 6, "correct": 3, "scored": 6, "answered": 4}


@needs_mcp
def test_a_wrong_submission_and_none_at_all_get_nothing(managed):
    assert managed.verify()["reward"] == 0.0
    assert "The task is over" in managed.post("act", "NEXT")[1]


ATTACKS = [
    ("settle", "guess"),
    ("settle", ""),
    ("open", "key"),
    ("began", ""),
    ("../settle", "x"),
    ("act/../../episode.json", "x"),
    ("mcp", "{}"),
    ("act", "\x00\xff ANSWER 1 1\n" * 50),
    ("act", "ANSWER 1 " + "9" * 5000),
    ("act", "READ 999999999999999999\nRECOMPUTE -1\nSEED"),
]


@needs_mcp
def test_a_malicious_agent_gets_what_it_has_earned(managed):
    first = instance().steps[0]
    managed.post("act", f"NEXT\nANSWER 1 {first.answer[0]}")
    heard = [managed.post(path, body) for path, body in ATTACKS]
    heard.append(managed.post("act", b"x" * (LARGEST_REQUEST + 1)))
    heard.append(managed.post("act", "NEXT", Host="evil.example"))
    heard.append(managed.post("act", f"ANSWER 1 {(first.answer[0] + 1) % 10**9}"))  # the first answer stays
    assert [status for status, _ in heard[-3:]] == [413, 421, 200]
    assert heard[0][0] == heard[1][0] == 403
    said = "\n".join(text for _, text in heard)
    later = [step.input[0] for step in instance().steps[1:] if step.input]
    assert [value for value in later if str(value) in said] == []
    assert str(SEED) not in said
    assert "Traceback" not in said
    for place in (managed.agent, managed.verifier):
        (place / "reward.json").write_text('{"reward": 1.0}')
    assert managed.verify() == {"reward": 1 / 6, "correct": 1, "scored": 6, "answered": 1}


@needs_mcp
def test_without_the_token_nothing_is_answered(managed):
    token = managed.url.rpartition("/")[2]
    managed.url = managed.url.replace(token, "0" * 32)
    assert managed.post("act", "NEXT")[0] == 401
    assert managed.post("settle", "x")[0] == 401


@needs_mcp
def test_mcp_and_plain_requests_meet_the_same_episode(managed):
    import asyncio

    from mcp import Client

    async def act() -> str:
        async with Client(f"{managed.url}/mcp") as client:
            await client.call_tool("next_step", {})
        async with Client(f"{managed.url}/mcp") as client:  # a client that comes again goes on where it was
            shown = await client.call_tool("submit_answer", {"t": 1, "values": [1]})
            return str(shown.content[0].text)

    assert "STEP 1 store answered" in asyncio.run(act())
    assert "STEP 2" in managed.post("act", "NEXT")[1]


def test_a_score_that_is_missing_is_no_zero(tmp_path):
    task = exported(tmp_path)
    for content in (None, "", '{"reward": "NaN"}'):
        (tmp_path / "reward.json").unlink(missing_ok=True)
        if content is not None:
            (tmp_path / "reward.json").write_text(content)
        variables = {"EIRKIT_REWARD": str(tmp_path / "reward.json"), "EIRKIT_VERIFIER_LOGS": str(tmp_path / "logs")}
        done = completed(["bash", str(task / "tests" / "test.sh")], env={**os.environ, **variables}, text=False)
        assert done.returncode == 1
        assert not (tmp_path / "logs" / "reward.json").exists()


def steps_of(trial: Trial) -> list[str]:
    return [step["name"] for step in trial.description["steps"]]


@needs_mcp
def test_the_oracle_gets_everything_step_by_step(tmp_path):
    with Trial(exported(tmp_path, **CONTROLLED), tmp_path / "trial") as trial:
        rewards = []
        for step in steps_of(trial):
            assert trial.set_up(step).returncode == 0
            trial.solve()
            rewards.append(trial.verify()["reward"])
        assert rewards == [t / 6 for t in range(1, 7)]


@needs_mcp
def test_every_step_is_alone_and_leaves_what_the_native_loop_leaves(tmp_path):
    replies = ["ANSWER 1 5", "no idea", "ANSWER 3 1\nANSWER 3 7", "", "ANSWER 5 2", "ANSWER 9 9"]
    suite: Suite = suite_of(**CONTROLLED, model_options={"protocol": "text", "reask": False})
    (task,) = export_harbor(suite, tmp_path / "tasks", draw)
    with Trial(task.folder, tmp_path / "trial") as trial:
        keys = json.loads((trial.episode / "episode.json").read_text())["keys"]
        for t, (step, reply) in enumerate(zip(steps_of(trial), replies, strict=True), 1):
            assert trial.post("open", keys[-1])[0] == 403 if t < 6 else True  # a later step stays shut
            done = trial.set_up(step)
            assert done.returncode == 0, done.stderr
            left = {path.name for path in trial.agent.iterdir()}
            assert left == {"step.md"}  # neither the key nor what the agent wrote before is there
            shown = (trial.agent / "step.md").read_text()
            assert f"STEP {t} " in shown
            assert shown.count("A_") - shown.count("REFS") - 1 <= 2  # the rules name A_t; h = 2 records are kept
            assert trial.post("open", keys[t - 1])[1] == shown  # asking again shows the same
            if reply:
                (trial.agent / "answer.txt").write_text(reply)
            (trial.agent / "diary").mkdir()
            (trial.agent / "diary" / ".hidden").write_text("A_1 = 5")
            trial.collect()
        reward = trial.verify()
    in_text = suite_of(**CONTROLLED, model_options={"protocol": "text", "reask": False})
    native(in_text, tmp_path / "native", Saying([Reply(reply, (), UNKNOWN_USAGE) for reply in replies]))
    assert telemetry(trial.episode / "out") == telemetry(tmp_path / "native")
    score = telemetry(tmp_path / "native")[0]["score"]
    assert reward["reward"] == score["correct"] / score["steps"]


@needs_mcp
@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_an_agent_cannot_hide_files_or_processes_from_the_next_step(tmp_path):
    stranger = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups")
    home = Path("/dev/shm") / f"eirkit-{os.getpid()}"
    home.mkdir()
    installed = home / "installed"
    installed.write_text("the agent's own program, there before the first step")
    for path in (home, installed):
        os.chown(path, STRANGER, STRANGER)
    try:
        with Trial(exported(tmp_path, **CONTROLLED), tmp_path / "trial") as trial:
            places = {"EIRKIT_TASK": str(home / "task"), "EIRKIT_ROOTS": str(home), "HOME": str(home)}
            variables = {**trial.agent_environment(), **places}

            def as_stranger(*command: str) -> str:
                done = completed([*stranger, *command], env=variables, cwd="/")
                assert done.returncode == 0, done.stderr
                return done.stdout

            def set_up(step: str) -> None:
                shutil.copy(trial.task / "steps" / step / "workdir" / "setup.sh", home / "setup.sh")
                as_stranger("bash", str(home / "setup.sh"))

            set_up("step-001")
            hide = f"mkdir {home}/.s && echo A_1 > {home}/.s/x && touch -d 2001-01-01 {home}/.s/x {home}/.s"
            process = int(as_stranger("bash", "-c", f"{hide}; sleep 600 > /dev/null 2>&1 & echo $!"))
            set_up("step-002")
            assert {path.name for path in home.iterdir()} == {"installed", "task"}
            assert not is_alive(process)
            assert "STEP 2" in (home / "task" / "step.md").read_text()
    finally:
        shutil.rmtree(home)


@needs_mcp
def test_an_agent_that_is_root_is_refused(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("this is not root")
    with Trial(exported(tmp_path, **CONTROLLED), tmp_path / "trial") as trial:
        variables = {key: value for key, value in trial.agent_environment().items() if key != "EIRKIT_ROOTS"}
        script = shutil.copy(trial.task / "steps" / "step-001" / "workdir" / "setup.sh", trial.agent)
        done = completed(["bash", str(script)], env=variables)
        assert done.returncode == 1
        assert "the agent must not be root" in done.stderr


def is_alive(process: int) -> bool:
    """True for a process that can still do something; one that nobody has waited for yet cannot."""
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(") ")[2][0] != "Z"


def understood(*folders: Path) -> list[dict[str, Any]]:
    script = Path(__file__).with_name("harbor_models.py")
    command = [str(HARBOR), str(script), *map(str, folders)]
    done = completed(command, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.splitlines()[-1]))


@needs_harbor
def test_harbor_understands_the_folders(tmp_path):
    one, many = exported(tmp_path / "a"), exported(tmp_path / "b", **CONTROLLED)
    managed, controlled = understood(one, many)
    assert managed["name"] == f"eirkit/{one.name}"
    assert (managed["verifier"], managed["steps"]) == ("separate", [])
    assert managed["mcp"][0]["transport"] == "streamable-http"
    assert managed["artifacts"] == [["episode", "/episode/reward.json"], ["episode", "/episode/out"]]
    assert managed["solve"].endswith("solution/solve.sh")
    assert "next_step" in managed["instruction"]
    assert controlled["steps"] == [f"step-{t:03d}" for t in range(1, 7)]
    assert (controlled["strategy"], controlled["step_verifiers"]) == ("final", ["separate"])
    assert [service for service, _ in controlled["collect"]] == ["main", "episode"]
    assert controlled["last_artifacts"] == [["episode", "/episode/out"]]
    assert controlled["agent_user"] == "agent"
    assert controlled["setup"]
    assert "/task/answer.txt" in controlled["instruction"]


def test_the_module_says_how_it_is_run(tmp_path):
    command = [sys.executable, "-m", "eirkit_bridges.sidecar", "dance"]
    done = completed(command)
    assert (done.returncode, "settle" in done.stderr) == (2, True)
