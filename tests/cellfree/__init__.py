"""Tests of the cellfree task."""
