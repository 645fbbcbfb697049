"""Packs: the file, the program in it, a runtime without torch, exports.

Nothing is imported here, so that packs open where torch is not installed.
"""

__all__ = ["VALUES"]

VALUES = ("float32", "float16", "int8")  # how weights are stored
