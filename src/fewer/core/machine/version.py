"""The version, as pyproject.toml has it."""

__all__ = ["VERSION"]

VERSION = "0.2.0.dev0"
