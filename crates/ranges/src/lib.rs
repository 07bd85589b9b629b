//! Sets of packet numbers and reassembly of records, bounded.
