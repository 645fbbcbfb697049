"""The command line as a stranger meets it: one line for every mistake, JSON for programs, help at once."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from fewer import open_pack, zoo
from fewer.cli import VERBS, main
from fewer.cli.show import metrics
from fewer.cli.verbs.train import summary
from fewer.core.registry import systems
from fewer.pruning.pruning import Pruning

TRAIN = ["train", "vision", "--set", "network=cnn0", "--set", "classes=3,7", "--steps", "3", "--batch", "8"]
Lines = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    assert main([*TRAIN, "--prune", "snip", "--sparsity", "0.5", "--out", str(out), "--json"]) == 0
    return out


MISTAKES = {
    "an unknown verb": (["trian", "vision"], "did you mean 'train'"),
    "no verb": ([], "VERB"),
    "an unknown task": (["train", "visoin", "--out", "{tmp}/r"], "did you mean 'vision'"),
    "an unknown task to check": (["check", "nowhere"], "module:Class"),
    "a module that is not there": (["check", "no_such_module:Task"], "no_such_module"),
    "a class that is not there": (["check", "tests.toys:Fitt"], "did you mean 'Fit'"),
    "a class that is no task": (["train", "json:JSONDecoder", "--out", "{tmp}/r"], "Task"),
    "no folder": (["train", "vision"], "--out"),
    "sparsity above one": ([*TRAIN, "--prune", "snip", "--sparsity", "1.5", "--out", "{tmp}/r"], "1.5"),
    "sparsity that is no number": ([*TRAIN, "--prune", "snip", "--sparsity", "nan", "--out", "{tmp}/r"], "nan"),
    "sparsity that is a word": ([*TRAIN, "--prune", "snip", "--sparsity", "lots", "--out", "{tmp}/r"], "lots"),
    "sparsity without a method": ([*TRAIN, "--sparsity", "0.5", "--out", "{tmp}/r"], "--prune"),
    "an unknown criterion": ([*TRAIN, "--prune", "snipp", "--out", "{tmp}/r"], "did you mean 'snip'"),
    "an unknown pruning setting": ([*TRAIN, "--prune", "snip,scop=layer", "--out", "{tmp}/r"], "did you mean 'scope'"),
    "a word without a value": ([*TRAIN, "--set", "network", "--out", "{tmp}/r"], "key=value"),
    "an unknown setting": ([*TRAIN, "--set", "netwrk=mlp", "--out", "{tmp}/r"], "did you mean 'network'"),
    "a value of the wrong type": ([*TRAIN, "--set", "validation=some", "--out", "{tmp}/r"], "validation=some"),
    "one beta": ([*TRAIN, "--optimizer", "adam,betas=0.9", "--out", "{tmp}/r"], "betas"),
    "negative steps": ([*TRAIN, "--steps", "-3", "--out", "{tmp}/r"], "-3"),
    "no threads": ([*TRAIN, "--threads", "0", "--out", "{tmp}/r"], "threads"),
    "an unknown engine": ([*TRAIN, "--engine", "warp", "--out", "{tmp}/r"], "warp"),
    "an unknown device": ([*TRAIN, "--device", "abacus", "--out", "{tmp}/r"], "abacus"),
    "seeds that are none": ([*TRAIN, "--seeds", "a-b", "--out", "{tmp}/r"], "a-b"),
    "a seed too large": ([*TRAIN, "--seeds", "99999999999999999999", "--out", "{tmp}/r"], "seeds"),
    "an empty range of seeds": ([*TRAIN, "--seeds", "4-0", "--out", "{tmp}/r"], "seeds"),
    "a hardening without a budget": ([*TRAIN, "--harden", "pgd", "--out", "{tmp}/r"], "pgd"),
    "data that is missing": ([*TRAIN, "--set", "data={tmp}/none", "--out", "{tmp}/r"], "none"),
    "NaN in the data": ([*TRAIN, "--set", "data={tmp}/nan.npz", "--out", "{tmp}/r"], "NaN"),
    "a start that is missing": ([*TRAIN, "--from", "{tmp}/none", "--out", "{tmp}/r"], "config.json"),
    "a run that is missing": (["evaluate", "{tmp}/none"], "config.json"),
    "a folder that is no run": (["evaluate", "{tmp}"], "config.json"),
    "an unknown split": (["evaluate", "{run}", "--split", "exam"], "exam"),
    "an unknown attack": (["evaluate", "{run}", "--attack", "hammer:0.3"], "hammer"),
    "an unknown study": (["reproduce", "vision/table99"], "table99"),
    "an unknown bench": (["bench", "benhc"], "benhc"),
    "a task to describe that is none": (["tasks", "visoin"], "did you mean 'vision'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_with_2_and_one_line(name: str, run: Path, tmp_path: Path, capsys: Lines) -> None:
    images, labels = numpy.full((20, 28, 28), numpy.nan, dtype=numpy.float32), numpy.arange(20) % 2
    arrays = {"train_images": images, "train_labels": labels, "images": images, "labels": labels}
    numpy.savez(tmp_path / "nan.npz", **arrays)
    words, expected = MISTAKES[name]
    capsys.readouterr()
    assert main([word.format(tmp=tmp_path, run=run) for word in words]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and said.err.startswith("fewer: ") and said.out == "", said.err
    assert expected in said.err, said.err


@pytest.mark.parametrize("words", [["trian"], ["tasks", "visoin"], ["train", "vision", "--sparsity", "x"]])
def test_a_real_process_says_the_same_and_shows_no_traceback(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "fewer", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_json_is_json_and_nothing_else(run: Path, tmp_path: Path, capsys: Lines) -> None:
    commands = [
        [*TRAIN, "--out", str(tmp_path / "run")], ["evaluate", str(run)], ["evaluate", str(run), str(run)],
        ["tasks"], ["tasks", "vision"], ["tasks", "pruning"], ["tasks", "training"], ["reproduce", "--list"],
        ["check", "tests.toys:Fit"],
    ]  # fmt: skip
    for words in commands:
        capsys.readouterr()
        assert main([*words, "--json"]) == 0, words
        said = capsys.readouterr()
        assert said.err == "" and json.loads(said.out), words


def test_figures_that_are_not_finite_are_null_in_json(capsys: Lines) -> None:
    from fewer.cli.show import show

    show({"loss": float("nan"), "each": [float("inf"), 1.0]}, True)
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {"loss": None, "each": [None, 1.0]}


def test_training_speaks_on_stderr_and_answers_on_stdout(tmp_path: Path, capsys: Lines) -> None:
    assert main([*TRAIN, "--seeds", "0,2", "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "accuracy" in said.out and "3/3" in said.err and "loss/net" in said.err


def test_attacks_named_one_by_one_are_the_same_as_with_a_plus_between(run: Path, capsys: Lines) -> None:
    found = []
    capsys.readouterr()
    for words in (["--attack", "fgsm:0.1+pgd:0.1,steps=2"], ["--attack", "fgsm:0.1", "--attack", "pgd:0.1,steps=2"]):
        assert main(["evaluate", str(run), *words, "--limit", "20", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert all(any(kind in name.lower() for name in found[0]) for kind in ("fgsm", "pgd"))


def test_evaluating_gives_the_figures_that_training_printed(run: Path, capsys: Lines) -> None:
    capsys.readouterr()
    assert main(["evaluate", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    trained = json.loads((run / "metrics.json").read_text())
    assert {key: found[key] for key in trained} == pytest.approx(trained)
    assert found["kept_weights"] * 2 == pytest.approx(5190, rel=0.2)


@pytest.fixture(scope="module")
def packed(run: Path) -> Path:
    assert main(["pack", str(run), "-o", str(run / "net.pack")]) == 0
    return run / "net.pack"


def predicted(packed: Path, folder: Path, images: numpy.ndarray) -> int:  # type: ignore[type-arg]
    numpy.save(folder / "x.npy", images)
    (folder / "y.npy").unlink(missing_ok=True)
    return main(["run", str(packed), "--input", str(folder / "x.npy"), "-o", str(folder / "y.npy")])


def test_bytes_are_pixels_for_a_pack_as_they_are_in_training(packed: Path, tmp_path: Path) -> None:
    images = numpy.random.default_rng(0).integers(0, 256, (4, 1, 28, 28), dtype=numpy.uint8)
    assert predicted(packed, tmp_path, images) == 0
    answer = numpy.load(tmp_path / "y.npy")
    assert predicted(packed, tmp_path, images.astype(numpy.float32) / 255) == 0
    assert numpy.allclose(answer, numpy.load(tmp_path / "y.npy"), atol=1e-6)


@pytest.mark.parametrize(("value", "said"), [(255.0, "pixels from"), (-0.1, "pixels from"), (numpy.nan, "NaN")])
def test_a_pack_refuses_images_that_are_none(packed: Path, tmp_path: Path, capsys: Lines, value, said: str) -> None:
    images = numpy.zeros((2, 1, 28, 28), dtype=numpy.float32)
    images[1, 0, 3, 3] = value
    capsys.readouterr()
    assert predicted(packed, tmp_path, images) == 2
    found = capsys.readouterr().err
    assert found.count("\n") == 1 and said in found and not (tmp_path / "y.npy").exists()


def test_no_samples_are_no_lines(packed: Path, tmp_path: Path, capsys: Lines) -> None:
    numpy.save(tmp_path / "x.npy", numpy.zeros((0, 1, 28, 28), dtype=numpy.float32))
    capsys.readouterr()
    assert main(["run", str(packed), "--input", str(tmp_path / "x.npy")]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("classes", ["7,3", "3,7,8"])
def test_runs_that_answer_another_question_do_not_vote(run: Path, tmp_path: Path, capsys: Lines, classes: str) -> None:
    other = [f"classes={classes}" if word == "classes=3,7" else word for word in TRAIN]
    assert main([*other, "--out", str(tmp_path / "other")]) == 0
    capsys.readouterr()
    assert main(["vote", str(run), str(tmp_path / "other")]) == 2
    assert "another question" in capsys.readouterr().err
    assert main(["vote", str(run), str(run)]) == 0


def test_a_quota_is_compared_with_the_sparsity_asked_for(tmp_path: Path) -> None:
    prune = ["--prune", "magnitude,scope=layer,layer_quota=0.3", "--sparsity", "0.5"]
    assert main([*TRAIN, *prune, "--out", str(tmp_path / "run")]) == 0
    assert Pruning("magnitude", 0.9, layer_quota=0.1).layer_quota == 0.1


def test_a_folder_that_is_no_run_is_left_as_it_was(tmp_path: Path, capsys: Lines) -> None:
    (tmp_path / "holiday.txt").write_text("photos")
    assert main([*TRAIN, "--out", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.txt"]


def test_checking_a_broken_task_names_the_fault_and_ends_with_2(capsys: Lines) -> None:
    assert main(["check", "tests.custom.test_contract:InfiniteLoss"]) == 2
    said = capsys.readouterr()
    assert "FAIL losses are finite scalars" in said.out and said.err.count("\n") == 1


def test_a_fault_behind_many_checks_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Lines
) -> None:
    (tmp_path / "uneven.py").write_text(
        "import torch\nfrom fewer.custom.supervised import Classification\nclass Uneven(Classification):\n"
        "    def model(self): return torch.nn.Linear(4, 3)\n"
        "    def loaders(self): return {s: [(torch.randn(9, 4), torch.arange(8) % 3)] for s in ('train', 'test')}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["check", "uneven:Uneven"]) == 2
    said = capsys.readouterr().out
    assert said.count("9 inputs and 8 targets") == 1 and said.count(": as above") > 5


def test_help_names_every_verb_and_every_verb_has_help(capsys: Lines) -> None:
    for words in [["--help"], *([verb, "--help"] for verb in VERBS)]:
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 0
        said = capsys.readouterr()
        assert said.err == "" and "usage: fewer" in said.out
        if words == ["--help"]:
            assert all(verb in said.out for verb in VERBS)


def test_help_loads_the_verbs_and_the_standard_library_and_so_answers_at_once() -> None:
    code = "import sys, fewer.cli\ntry: fewer.cli.main(['--help'])\nfinally: print('LOADED', *sys.modules)"
    found = []
    for program in ("import sys; print('LOADED', *sys.modules)", code):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        found.append(set(done.stdout.partition("LOADED ")[2].split()))
    loaded = found[1] - found[0]  # beside what an empty Python has
    ours = {name for name in loaded if name.split(".")[0] == "fewer"}
    assert {name.split(".")[0] for name in loaded - ours} <= set(sys.stdlib_module_names)
    assert len(loaded - ours) < 150
    assert not {name for name in ours if (importlib.util.find_spec(name).origin or "").endswith(".so")}


def test_importing_has_no_effects_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, os, random\nbefore = dict(os.environ), os.getcwd(), random.getstate(), list(sys.path)\n"
        "import fewer, fewer.cli\nfewer.cli.parser()\n"
        "assert before == (dict(os.environ), os.getcwd(), random.getstate(), list(sys.path))\n"
        "heavy = {'torch', 'numpy', 'scipy', 'sklearn', 'matplotlib', 'safetensors', 'rich', 'onnx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n" and done.stderr == ""


def test_every_task_listed_can_be_described(capsys: Lines) -> None:
    for name in systems():
        assert main(["tasks", name]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 1


def test_figures_of_several_seeds_are_a_mean_and_its_parts() -> None:
    shown = metrics(summary([{"accuracy": 0.25}, {"accuracy": 0.5}]))
    assert shown == "accuracy  0.375  (of 0.25, 0.5)"


@pytest.mark.parametrize("words", [["run", "digits-3197", "--info"], ["export", "digits-3197", "--to", "c"]])
def test_a_pack_that_comes_with_the_package_is_given_by_its_name(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["-o", str(tmp_path / "digits.c")] if words[0] == "export" else []
    assert main([*words, *out]) == 0
    assert "vision" in capsys.readouterr().out or (tmp_path / "digits.c").stat().st_size > 1000


@pytest.mark.parametrize("words", [["run", "digits-3179"], ["export", "digits-3179", "--to", "c", "-o", "a.c"]])
def test_a_pack_that_is_neither_a_file_nor_a_name_is_told_which_one_it_resembles(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "digits-3197" in capsys.readouterr().err


def test_a_file_is_meant_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits-3197").write_bytes(zoo.path("control-hopper-99").read_bytes())
    assert open_pack("digits-3197").settings["task"] == "control"


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_tells_the_validation_metric_beside_the_losses(
    terminal: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "200")
    words = ["--steps", "100", "--batch", "8", "--validate-every", "20", "--out", str(tmp_path / "run")]
    assert main(["train", "tests.toys:Blobs", *words]) == 0
    said = capsys.readouterr().err
    last = [line for line in said.replace("\r", "\n").splitlines() if "100/100" in line][-1]
    assert "validation/accuracy 0." in last and "loss/net" in (last if terminal else said)
    assert terminal or said.count("validation/accuracy") == 5
