//! When the next packet may leave.
