"""The C code under the address and undefined-behaviour sanitizers, driven with right and wrong data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import fewer.packs
from tests.waiting import GIVE_UP_SECONDS

KERNELS = Path(fewer.packs.__file__).parent / "kernels"
FLAGS = ["-shared", "-fPIC", "-g", "-O1", "-std=c11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

DRIVER = """
import contextlib, importlib.util, sys
import fewer.packs
for name in ("_codec", "_runtime", "_planes"):
    spec = importlib.util.spec_from_file_location(f"fewer.packs.{name}", f"{sys.argv[1]}/{name}.so")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[f"fewer.packs.{name}"] = module
    setattr(fewer.packs, name, module)
sys.path.insert(0, sys.argv[2])
import numpy as np
from fewer.packs.file import codec
from fewer.packs.images import planes
from fewer.packs.runtime import chain
from fewer.packs.runtime.convolution import sparse_convolution
from fewer.packs.program import Node
from fewer.packs.runtime.runtime import Network
from tests.packs.fuzz_pack import run
from tests.packs.test_runtime_chain import network, reference

from tests.packs.sanitized import convolved, multiplied, recurred, refused, resized, separated

assert codec._codec.__spec__.origin.startswith(sys.argv[1])
generator = np.random.default_rng(0)
for rows, columns in ((0, 0), (0, 5), (5, 0), (1, 1), (30, 41)):
    mask = generator.random((rows, columns)) < 0.2
    assert np.array_equal(codec.decode_mask(codec.encode_mask(mask), mask.shape), mask)
    codec.decode_mask(generator.bytes(20), mask.shape)
for kernel in ("avx512", "avx2", "portable"):
    try:
        chain.kernels().use(kernel)
    except ValueError:
        continue
    for sizes in ([1, 1], [17, 40, 30, 6], [5, 64, 65, 2]):
        for density in (0.0, 0.1, 1.0):
            program, tensors = network(sizes, density, ["relu", "elu", "tanh", "gelu", "clamp"], 1)
            made = Network(program, tensors)
            for samples in (0, 1, 17, 129):
                x = generator.normal(size=(samples, sizes[0])).astype(np.float32)
                assert np.allclose(made.predict(x), reference(program, tensors, x), atol=1e-4)
                made.predict(np.full((samples, sizes[0]), np.nan, np.float32))
    options = {"stride": [1, 2], "padding": [1, 2], "dilation": [1, 2], "groups": 1}
    options |= {"transposed": False, "output_padding": [0, 0]}
    for places in ((7, 9), (40, 33)):
        weight = generator.normal(size=(3, 2, 3, 3)).astype(np.float32) * (generator.random((3, 2, 3, 3)) < 0.05)
        sparse_convolution(Node("conv", ("x", "w"), "y", options), {"w": weight.astype(np.float32)})(
            generator.normal(size=(2, 2, *places)).astype(np.float32))
    for wrong in ([(3, b"", b"", b"", chain.NOTHING)], [(1, 2)], [3]):
        try:
            chain.kernels().Chain(wrong, (3,), (3,))
            raise SystemExit("accepted")
        except (ValueError, TypeError):
            pass
for kernel in ("avx512", "avx2", "portable"):
    try:
        chain.kernels().use(kernel), planes.kernels().use(kernel)
    except ValueError:
        continue
    convolved(generator), separated(generator), resized(generator), recurred(generator), multiplied(generator)
    refused()
    own, planes.images_beside = planes.images_beside, lambda *rest: 1
    convolved(generator), separated(generator)
    planes.images_beside = own
with contextlib.suppress(ValueError):
    planes.kernels().use("avx512_whole")
    convolved(generator), separated(generator), refused()
print(run(200, seed=11))
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler with sanitizers")
def test_the_kernels_are_clean_under_the_sanitizers(tmp_path: Path) -> None:
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if not Path(library).is_file():
        pytest.skip("the compiler has no address sanitizer")
    include = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}", f"-I{KERNELS}"]
    for name in ("codec", "runtime", "planes"):
        target = str(tmp_path / f"_{name}.so")
        subprocess.run(["gcc", *FLAGS, *include, str(KERNELS / f"{name}.c"), "-o", target, "-lm"], check=True)
    (tmp_path / "driver.py").write_text(DRIVER)
    # Python itself keeps memory to the end, which is no leak of ours
    environment = {**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    command = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path), str(Path(__file__).parents[2])]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "refused" in done.stdout and "runtime error" not in done.stderr
