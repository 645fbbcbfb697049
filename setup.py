"""Builds the C extensions; the package installs and works without a compiler, only slower."""

import os
import re
import sys
import tomllib
from pathlib import Path

import numpy
from setuptools import Extension, setup

WINDOWS = sys.platform == "win32"
COMPILE = ["/O2", "/std:c11"] if WINDOWS else ["-O3", "-std=c11", "-fno-math-errno", "-pthread"]
# without the symbols that only a debugger reads, which are four fifths of the bytes
LINK = {"win32": [], "darwin": ["-pthread", "-Wl,-S"]}.get(sys.platform, ["-pthread", "-Wl,-s"])


def extensions(package: str) -> list[Extension]:
    """One for each C file among a package's kernels."""
    kernels = Path("src/fewer") / package / "kernels"
    return [
        Extension(
            f"fewer.{package}._{source.stem}",
            [str(source)],
            depends=[str(header) for header in sorted(kernels.glob("*.h"))],
            include_dirs=[numpy.get_include(), str(kernels)],
            extra_compile_args=COMPILE,
            extra_link_args=LINK,
            libraries=[] if WINDOWS else ["m"],
            optional=True,
        )
        for source in sorted(kernels.glob("*.c"))
    ]


def readme() -> str:
    """README.md with links that also work where the other files are not: at the tag of this version."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    address, tag = project["urls"]["Repository"], f"v{project['version']}"

    def absolute(found: re.Match[str]) -> str:
        kind = "raw" if found[1].startswith("!") else "blob"
        return f"{found[1]}({address}/{kind}/{tag}/{found[2]})"

    text = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)", absolute, text)


setup(
    ext_modules=[*extensions("packs"), *extensions("sparse")],
    options={"build_ext": {"parallel": os.cpu_count() or 1}},  # a kernel takes ten seconds and more
    long_description=readme(),
    long_description_content_type="text/markdown",
)
