"""Radar and satellite files as services write them: each a sequence of images that know where and when they are."""
