CREATE TABLE state (
    id TEXT PRIMARY KEY                     -- a name that no other state has: of its collections on a Qdrant server
) STRICT;
INSERT INTO state VALUES (lower(hex(randomblob(16))));

CREATE TABLE collections (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    made_of TEXT NOT NULL DEFAULT '',       -- what decides cuts and vectors, as JSON: other parts need another index
    created TEXT NOT NULL
) STRICT;

CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice
    public_id TEXT NOT NULL UNIQUE,
    collection_id INTEGER NOT NULL REFERENCES collections (id),
    name TEXT NOT NULL,                     -- what citations call it
    status TEXT NOT NULL CHECK (status IN ('pending', 'ready', 'failed', 'deleting')),
    why TEXT NOT NULL DEFAULT '',           -- of a failed one
    origin TEXT NOT NULL DEFAULT 'upload' CHECK (origin IN ('upload', 'folder')),
    bytes INTEGER NOT NULL DEFAULT 0,
    chunks INTEGER NOT NULL DEFAULT 0,
    dropped TEXT NOT NULL DEFAULT '{}',     -- what was left out, by reason
    coverage REAL,                          -- share of the text that chunks have
    created TEXT NOT NULL,
    -- What may be long stands last: SQLite reads through it to whatever stands behind it.
    text TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    metadata TEXT NOT NULL DEFAULT '{}',
    pages TEXT NOT NULL DEFAULT '[]',
    cuts TEXT NOT NULL DEFAULT '[]',        -- places of its chunks in the text, as JSON: see retrieval/ingest.py
    windows TEXT NOT NULL DEFAULT ''        -- the same of what the index holds, where that is not the chunks
) STRICT;
CREATE UNIQUE INDEX one_ready_document_a_name ON documents (collection_id, name) WHERE status = 'ready';
CREATE INDEX documents_by_status ON documents (collection_id, status);

-- What the shard is made of, and made again where it is lost: a vector a chunk, or a window of one.
CREATE TABLE points (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- the point's id in the shard: never used twice
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    vector BLOB NOT NULL                    -- float32, little-endian
) STRICT;
CREATE INDEX points_by_document ON points (document_id);

-- What was taken from the folder that a collection began with: a file is taken again only when it has changed.
CREATE TABLE folder_files (
    collection_id INTEGER NOT NULL REFERENCES collections (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (collection_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest BLOB NOT NULL UNIQUE,            -- SHA-256; the key itself is nowhere
    label TEXT NOT NULL,
    scopes TEXT NOT NULL,                   -- query, ingest, admin; separated by blanks
    collection TEXT,                        -- NULL is any
    rate TEXT NOT NULL DEFAULT '',          -- '60/minute'; empty is the server's
    quota INTEGER,                          -- questions, for good; NULL is no quota
    used INTEGER NOT NULL DEFAULT 0,
    created TEXT NOT NULL,
    revoked TEXT
) STRICT;

CREATE TABLE traces (
    id TEXT PRIMARY KEY,
    collection TEXT NOT NULL,
    key_id INTEGER,
    began REAL NOT NULL,                    -- seconds since 1970
    ms REAL NOT NULL,
    body TEXT NOT NULL,                     -- spans and outcome as JSON, without anybody's words
    content TEXT,                           -- question, answer, prompts, only with --trace-content
    thumb INTEGER,                          -- 1 up, -1 down
    comment TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX traces_by_time ON traces (began);
