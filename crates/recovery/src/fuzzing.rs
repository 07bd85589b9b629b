//! The operations and the oracle.
