"""Tests of questions."""
