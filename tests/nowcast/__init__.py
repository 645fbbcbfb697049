"""Tests of the nowcast task."""
