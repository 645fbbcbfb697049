"""Exported C on other processors: right on a Cortex-A under an emulator, and small enough to link for a Cortex-M."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fewer.packs.export import c
from fewer.packs.pack import load
from fewer.packs.runtime.runtime import Pack
from fewer.zoo import path
from tests.waiting import GIVE_UP_SECONDS

FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"]
PACKS = ["digits-3197", "control-hopper-95"]
SAMPLES = 37  # a full block of a batch, and some that are left
MAIN = """\
#include <stdio.h>
void net_batch(const float *input, float *output, int samples);
static float input[{inputs}], output[{outputs}];
int main(int count, char **names) {{
    (void)count;
    FILE *from = fopen(names[1], "rb"), *to = fopen(names[2], "wb");
    if (!from || !to || fread(input, sizeof input, 1, from) != 1) return 1;
    net_batch(input, output, {samples});
    return fwrite(output, sizeof output, 1, to) != 1 || fclose(to);
}}
"""


def needed(*programs: str) -> list[str]:
    found = [shutil.which(name) for name in programs]
    if not all(found):
        pytest.skip(f"{' or '.join(programs)} is not installed")
    return [str(one) for one in found]


def exported(name: str, folder: Path) -> tuple[Pack, c.Footprint]:
    pack = load(path(name))
    return pack, c.export(pack, folder / "net.c", "net")


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_in_c_is_right_on_a_cortex_a(tmp_path: Path, name: str) -> None:
    compiler, emulator = needed("aarch64-linux-gnu-gcc", "qemu-aarch64")
    pack, _ = exported(name, tmp_path)
    shape = pack.networks["net"].inputs[0].shape
    x = np.random.default_rng(0).random((SAMPLES, *shape)).astype(np.float32)
    wanted = np.asarray(pack.predict(x))
    (tmp_path / "main.c").write_text(MAIN.format(inputs=x.size, outputs=wanted.size, samples=SAMPLES))
    program, given, made = (str(tmp_path / part) for part in ("net", "x", "y"))
    sources = [str(tmp_path / "net.c"), str(tmp_path / "main.c")]
    subprocess.run([compiler, *FLAGS, "-static", *sources, "-o", program, "-lm"], check=True)
    x.tofile(given)
    subprocess.run([emulator, program, given, made], check=True, timeout=GIVE_UP_SECONDS)
    found = np.fromfile(made, np.float32).reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, atol=1e-5 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_in_c_compiles_for_a_cortex_m_and_takes_the_flash_that_is_told(tmp_path: Path, name: str) -> None:
    compiler, sizes = needed("arm-none-eabi-gcc", "arm-none-eabi-size")
    _, size = exported(name, tmp_path)
    target = str(tmp_path / "net.o")
    cortex = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
    subprocess.run([compiler, *FLAGS, *cortex, "-c", str(tmp_path / "net.c"), "-o", target], check=True)
    text = subprocess.run([sizes, "-A", target], check=True, capture_output=True, text=True).stdout
    constants = sum(int(count) for count in re.findall(r"^\.rodata\S*\s+(\d+)", text, re.MULTILINE))
    assert abs(constants - size.flash) <= 0.02 * size.flash + 64
    assert size.ram > 0
