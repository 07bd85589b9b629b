//! Identity, keys and sessions.
