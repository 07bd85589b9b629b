//! Packets and frames, as docs/wire.md has them.
