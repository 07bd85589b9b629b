//! Outbox and inbox in SQLite.
