"""Endpoints by role, their limits and budget, and an adapter a technology."""
