//! Sockets, clock and threads.
