//! The protocol machines: Node, Peer, Sender, Receiver.
