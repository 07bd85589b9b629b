//! Parts of `stayfast demo`: what is sent, who is killed when, the two processes, and the proof.

pub mod children;
pub mod corpus;
pub mod kills;
pub mod proof;
pub mod random;
pub mod show;
pub mod summary;
pub mod watch;
