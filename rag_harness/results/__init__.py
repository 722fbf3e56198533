"""Rows, their files, and whether these are whole."""
