//! Operations, oracle and checks.
