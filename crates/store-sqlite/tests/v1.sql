-- A store of schema version 1. The checksums were computed by a program that shares no code with this one.
CREATE TABLE stayfast_meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE stayfast_streams (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    trimmed INTEGER NOT NULL DEFAULT 0,
    next    INTEGER NOT NULL DEFAULT 0,
    opened  INTEGER NOT NULL DEFAULT 0,
    lineage INTEGER NOT NULL DEFAULT 0,
    parent  INTEGER NOT NULL DEFAULT 0,
    bytes   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE stayfast_outbox (
    id      INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    opened  INTEGER NOT NULL,
    lineage INTEGER NOT NULL,
    parent  INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    records BLOB NOT NULL,
    bodies  BLOB NOT NULL,
    stream  INTEGER GENERATED ALWAYS AS (id >> 44) VIRTUAL,
    first   INTEGER GENERATED ALWAYS AS (id & 17592186044415) VIRTUAL
) STRICT;

CREATE TABLE stayfast_quarantine (
    id      INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    opened  INTEGER NOT NULL,
    lineage INTEGER NOT NULL,
    parent  INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    records BLOB NOT NULL,
    bodies  BLOB NOT NULL,
    stream  INTEGER GENERATED ALWAYS AS (id >> 44) VIRTUAL,
    first   INTEGER GENERATED ALWAYS AS (id & 17592186044415) VIRTUAL
) STRICT;

CREATE TABLE stayfast_cursors (
    sender  TEXT NOT NULL,
    store   INTEGER NOT NULL,
    stream  TEXT NOT NULL,
    next    INTEGER NOT NULL,
    lineage INTEGER NOT NULL,
    PRIMARY KEY (sender, store, stream)
) STRICT, WITHOUT ROWID;

CREATE TABLE stayfast_records (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    sender TEXT NOT NULL,
    store  INTEGER NOT NULL,
    stream TEXT NOT NULL,
    number INTEGER NOT NULL,
    body   BLOB,
    hole   TEXT CHECK ((hole IS NULL) = (body IS NOT NULL))
) STRICT;

CREATE TABLE stayfast_notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE stayfast_peers (name TEXT PRIMARY KEY, address TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO stayfast_meta VALUES ('schema', 1), ('store', 4660);
INSERT INTO stayfast_streams (id, name, next, lineage, bytes) VALUES (1, 'orders', 2, 30583, 14);
INSERT INTO stayfast_outbox (id, count, opened, lineage, parent, sum, records, bodies)
    VALUES (17592186044416, 2, 0, 30583, 0, 339372876, x'070000007fb2dd8d0e0000008b418d9e', x'6f7264657220316f726465722032');
INSERT INTO stayfast_cursors VALUES ('pi3', 7, 'orders', 3, 9);
