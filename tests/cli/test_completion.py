"""Completion in real shells, colours on a terminal only, and options that resemble others."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fewer import zoo
from fewer.attack.attacks import OPTIONS
from fewer.attack.hardening import KINDS
from fewer.cli import main, offered, parser
from fewer.cli.about.completion import SHELLS, script
from fewer.core.registry import systems
from fewer.pruning.criteria import METHODS
from tests.waiting import until


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        (folder / shell).write_text(script(shell))
    return folder


def completed(scripts: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    listed = " ".join(f"'{word}'" for word in words)
    typed = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}"
    code = f"source {scripts / 'bash'}; {typed}; _shtab_fewer; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@needs_bash
def test_bash_completes_verbs_options_tasks_values_and_the_zoo(scripts: Path) -> None:
    assert set(completed(scripts, "fewer", "")) == set(offered())
    assert {"--help", "--version"} <= set(completed(scripts, "fewer", "--"))
    assert completed(scripts, "fewer", "tr") == ["train"]
    assert set(completed(scripts, "fewer", "train", "")) == set(systems())
    assert completed(scripts, "fewer", "train", "vision", "--spars") == ["--sparsity"]
    assert completed(scripts, "fewer", "train", "vision", "--engine", "c") == ["cohort"]
    assert set(zoo.names()) <= set(completed(scripts, "fewer", "serve", ""))
    assert completed(scripts, "fewer", "completion", "z") == ["zsh"]


@needs_bash
def test_bash_completes_the_values_that_each_option_takes(scripts: Path) -> None:
    assert completed(scripts, "fewer", "train", "vision", "--log", "") == ["tensorboard"]
    assert completed(scripts, "fewer", "train", "vision", "--harden", "tr") == ["trades:0.3"]
    assert completed(scripts, "fewer", "sweep", "grid.toml", "--on", "r") == ["ray"]
    assert completed(scripts, "fewer", "submit", "--split", "h") == ["heldout"]
    assert completed(scripts, "fewer", "train", "vision", "--steps", "") == []  # a number
    assert completed(scripts, "fewer", "data", "nowcast", "--gen") == ["--generate"]


def helped(verb: str) -> str:
    return " ".join(parser().verbs[verb].format_help().split())


@needs_bash
def test_what_is_registered_is_completed_and_in_the_help(scripts: Path) -> None:
    from fewer.core.engines import OPTIMIZERS
    from fewer.systems.nowcast.task.files.layout import CONTESTS

    def heads(*words: str) -> list[str]:
        return [word.partition(":")[0] for word in completed(scripts, "fewer", *words)]

    assert heads("train", "vision", "--prune", "") == list(METHODS)
    assert heads("train", "vision", "--harden", "") == list(KINDS)
    assert heads("train", "vision", "--optimizer", "") == list(OPTIMIZERS)
    assert heads("evaluate", "run", "--attack", "") == heads("report", "run", "--attack", "") == list(OPTIONS)
    assert heads("submit", "--contest", "") == [*CONTESTS, "all"]
    train, evaluate = helped("train"), helped("evaluate")
    assert all(word in train for word in (*METHODS, *KINDS, *OPTIMIZERS)) and all(name in evaluate for name in OPTIONS)


@needs_bash
def test_a_new_criterion_or_attack_is_a_line_and_help_and_shells_know_it() -> None:
    """The modules that were read before keep their lists, so a fresh interpreter registers them."""
    program = (
        "import re\nfrom fewer.pruning import criteria\nfrom fewer.attack import attacks\n"
        "criteria.METHODS = (*criteria.METHODS, 'novel')\nattacks.OPTIONS['sudden'] = {}\n"
        "from fewer.cli import parser\nfrom fewer.cli.about.completion import script\n"
        "assert 'novel' in parser().verbs['train'].format_help()\n"
        "assert 'sudden' in parser().verbs['evaluate'].format_help()\n"
        "for shell in ('bash', 'zsh', 'fish'):\n"
        "    assert {'novel', 'sudden'} <= set(re.findall(r'\\w+', script(shell)))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@needs_bash
def test_where_a_file_is_wanted_bash_completes_files(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.pack").touch()
    assert completed(scripts, "fewer", "train", "vision", "--out", "") == ["mine.pack"]
    assert completed(scripts, "fewer", "serve", "mi") == ["mine.pack"]
    assert "-o default" in (scripts / "bash").read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_its_shell_can_read(shell: str, scripts: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([shell, "-n", str(scripts / shell)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_completes_verbs_and_values(scripts: Path) -> None:
    def offered(line: str) -> list[str]:
        code = f"source {scripts / 'fish'}; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True, check=True)
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    assert offered("fewer tra") == ["train"]
    assert set(offered("fewer train vision --engine ")) == {"auto", "plain", "cohort", "sparse"}
    assert offered("fewer train vision --harden tr") == ["trades:0.3"]
    assert set(zoo.names()) <= set(offered("fewer serve "))


ZSHRC = """
fpath=({folder} $fpath)
autoload -U compinit
compinit -u -D
note() {{ zle complete-word; print -r -- "$BUFFER" > {folder}/part; mv {folder}/part {folder}/typed; BUFFER= }}
zle -N note
bindkey '^X' note
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_completes_verbs_options_values_and_files(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "_fewer").write_text((scripts / "zsh").read_text())
    (tmp_path / "mine.pack").touch()
    (tmp_path / ".zshrc").write_text(ZSHRC.format(folder=tmp_path))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "ZDOTDIR": str(tmp_path), "TERM": "xterm"}
    shell = subprocess.Popen(["zsh", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment)

    def completed(line: str) -> str:
        os.write(ours, f"fewer {line}\x18".encode())
        until((tmp_path / "typed").exists)
        found = (tmp_path / "typed").read_text().strip()
        (tmp_path / "typed").unlink()
        return found.removeprefix("fewer ")

    try:
        assert completed("tra") == "train"
        assert completed("train vis") == "train vision"
        assert completed("train vision --spars") == "train vision --sparsity"
        assert completed("train vision --engine coh") == "train vision --engine cohort"
        assert completed("train vision --harden tr") == "train vision --harden trades:0.3"
        assert completed("serve digits-31") == "serve digits-3197"
        assert completed("serve mi") == "serve mine.pack"
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "vision", "--out", "x", "--sparsty", "0.5"], "did you mean '--sparsity'?"),
        (["serve", "--prot=80"], "did you mean '--port'?"),
        (["tasks", "vision", "extra"], "one word too many: 'extra'"),
        (["data", "visoin"], "did you mean 'vision'?"),
        (["completion", "bsh"], "did you mean 'bash'?"),
    ],
)
def test_a_slip_is_told_what_it_resembles(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and expected in said, said


def on_a_terminal(words: list[str], **environment: str) -> str:
    """What a process writes when it believes to speak to a person."""
    ours, theirs = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    try:
        subprocess.run(
            [sys.executable, "-m", "fewer", *words], stdout=theirs, stderr=theirs, check=False,
            env={**variables, "TERM": "xterm", **environment},
        )  # fmt: skip
        return os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)


def test_colours_are_for_terminals_and_not_where_they_are_unwanted() -> None:
    assert "\x1b[31mfewer:" in on_a_terminal(["trian"])
    assert "\x1b" not in on_a_terminal(["trian"], NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(["trian"], TERM="dumb")
    done = subprocess.run([sys.executable, "-m", "fewer", "trian"], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("fewer: unknown verb 'trian'; did you mean 'train'?")


def test_every_verb_takes_json_and_the_script_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash", "--json"]) == 0
    assert "complete -o bashdefault -o default" in json.loads(capsys.readouterr().out)["script"]
