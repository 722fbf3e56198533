"""Bulk ingest: workers read, cut and embed windows of documents, so no process holds all documents.

No file of this folder knows whether its workers are this process or nodes of a cluster.
"""
