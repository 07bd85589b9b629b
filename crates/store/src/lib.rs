//! Outbox and inbox: operations, outcomes, memory model, conformance suite.
