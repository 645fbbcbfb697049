"""Builds the C extensions; the package installs and works without a compiler, only slower."""

from pathlib import Path

import numpy
from setuptools import Extension, setup


def extensions(package: str) -> list[Extension]:
    """One for each C file among a package's kernels."""
    kernels = Path("src/fewer") / package / "kernels"
    return [
        Extension(
            f"fewer.{package}._{source.stem}",
            [str(source)],
            depends=[str(header) for header in sorted(kernels.glob("*.h"))],
            include_dirs=[numpy.get_include(), str(kernels)],
            extra_compile_args=["-O3", "-std=c11", "-fno-math-errno", "-pthread"],
            extra_link_args=["-pthread"],
            libraries=["m"],
            optional=True,
        )
        for source in sorted(kernels.glob("*.c"))
    ]


setup(ext_modules=[*extensions("packs"), *extensions("sparse")])
