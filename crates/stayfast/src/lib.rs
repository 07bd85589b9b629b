//! Records that arrive: in order, exactly once, over UDP, with no connection to lose.
