"""Questions from documents: drafts with and without a model, filters, changes of documents, and review."""
