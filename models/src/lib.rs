//! Loom models of handoff.
