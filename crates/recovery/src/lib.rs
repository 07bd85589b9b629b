//! Ledger of sent packets, RTT, loss detection, episodes.
