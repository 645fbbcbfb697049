"""Tests of the vision task."""
