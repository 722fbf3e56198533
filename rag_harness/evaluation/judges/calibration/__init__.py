"""Compares judges with people: labels, agreement, saved calibrations, and means that are corrected by them."""
