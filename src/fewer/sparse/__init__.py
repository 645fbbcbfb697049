"""Pruned networks that are really smaller and really faster: the pack, its runtime, exports and the engine.

Nothing is imported here, so that `fewer.packs.pack` opens files where torch is not installed.
"""
