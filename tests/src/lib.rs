//! Whole-system tests: simulator, processes, sockets.
