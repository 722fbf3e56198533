"""Documents in bulk: a window of them at a time, read, cut and embedded by workers of which none holds them all.

No file knows whether its workers are this process or the nodes of a cluster.
"""
