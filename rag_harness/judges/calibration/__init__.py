"""Judges held against people: labels, agreement, what is kept of it, and means corrected by it."""
