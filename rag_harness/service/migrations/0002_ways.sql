-- An experiment may search in several ways: [[cuts, windows], …] of each way after the first, as JSON.
ALTER TABLE documents ADD COLUMN further TEXT NOT NULL DEFAULT '[]';

-- Other texts of chunks, summaries say, which a model was asked for: kept by content, so that each is paid for once.
CREATE TABLE kept_texts (
    collection_id INTEGER NOT NULL REFERENCES collections (id),
    key BLOB NOT NULL,                      -- of the chunk, and of all that decides the text
    name TEXT NOT NULL,                     -- of the document
    created TEXT NOT NULL,
    text TEXT NOT NULL,                     -- as JSON, for it may have half characters
    metadata TEXT NOT NULL,                 -- what the writer added to the chunk's, as JSON
    PRIMARY KEY (collection_id, key)
) STRICT;
CREATE INDEX kept_texts_by_name ON kept_texts (collection_id, name);
