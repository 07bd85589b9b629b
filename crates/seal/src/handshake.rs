//! The handshake: Noise_KKpsk0_25519_ChaChaPoly_BLAKE2s (noiseprotocol.org, revision 34), two messages.
//!
//! Nothing here keeps state: the initiator's is made anew from its ephemeral key when an answer comes, so an
//! answer that turns out bad has changed nothing.

use crate::resolver::Resolver;
use alloc::boxed::Box;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

/// What every handshake with one peer has in common.
pub(crate) struct Noise {
    pub secret: Zeroizing<[u8; 32]>,
    pub peer: [u8; 32],
    /// Zeros if there is none.
    pub psk: Zeroizing<[u8; 32]>,
    pub prologue: &'static [u8],
}

/// The prologue of this version.
pub(crate) const PROLOGUE: &[u8] = b"stayfast/1";

/// What a finished handshake leaves.
pub(crate) struct Finished {
    pub split: Zeroizing<[u8; 64]>,
    pub hash: [u8; 32],
}

impl Noise {
    fn build(&self, ephemeral: &[u8; 32], initiator: bool) -> Result<HandshakeState, snow::Error> {
        let params = "Noise_KKpsk0_25519_ChaChaPoly_BLAKE2s".parse()?;
        let resolver = Resolver { ephemeral: Zeroizing::new(*ephemeral) };
        let builder = Builder::with_resolver(params, Box::new(resolver))
            .local_private_key(&*self.secret)?
            .remote_public_key(&self.peer)?
            .psk(0, &self.psk)?
            .prologue(self.prologue)?;
        if initiator { builder.build_initiator() } else { builder.build_responder() }
    }

    /// Writes message 1: 48 bytes more than its payload.
    pub fn ask(&self, ephemeral: &[u8; 32], payload: &[u8], message: &mut [u8]) {
        self.asked(ephemeral, payload, message).expect("pattern, keys and lengths are ours");
    }

    fn asked(&self, ephemeral: &[u8; 32], payload: &[u8], message: &mut [u8]) -> Result<HandshakeState, snow::Error> {
        let mut state = self.build(ephemeral, true)?;
        state.write_message(payload, message)?;
        Ok(state)
    }

    /// Reads message 2, which answers the message 1 that `ask` makes of `ephemeral` and `asked`.
    /// `None` if it is not authentic.
    pub fn finish(&self, ephemeral: &[u8; 32], asked: &[u8], message: &[u8], payload: &mut [u8]) -> Option<Finished> {
        let mut state = self.asked(ephemeral, asked, &mut [0; 128]).ok()?;
        state.read_message(message, payload).ok()?;
        Finished::new(state)
    }

    /// Reads message 1. `None` if it is not authentic.
    pub fn read(&self, ephemeral: &[u8; 32], message: &[u8], payload: &mut [u8]) -> Option<Answering> {
        let mut state = self.build(ephemeral, false).ok()?;
        state.read_message(message, payload).ok()?;
        Some(Answering(state))
    }
}

/// Message 1 was read, message 2 is still to be written.
pub(crate) struct Answering(HandshakeState);

impl Answering {
    /// Writes message 2: 48 bytes more than its payload.
    pub fn answer(mut self, payload: &[u8], message: &mut [u8]) -> Option<Finished> {
        self.0.write_message(payload, message).ok()?;
        Finished::new(self.0)
    }
}

impl Finished {
    fn new(mut state: HandshakeState) -> Option<Finished> {
        let hash = state.get_handshake_hash().try_into().ok()?;
        let mut split = Zeroizing::new([0; 64]);
        let (initiator, responder) = state.dangerously_get_raw_split();
        split[..32].copy_from_slice(&*Zeroizing::new(initiator));
        split[32..].copy_from_slice(&*Zeroizing::new(responder));
        Some(Finished { split, hash })
    }
}
