//! Tests of single rules.
