//! The command `stayfast`.

fn main() {}
