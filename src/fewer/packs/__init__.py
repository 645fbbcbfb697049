"""Packs: the file, the program in it, a runtime without torch, exports.

Nothing is imported here, so that packs open where torch is not installed.
"""
