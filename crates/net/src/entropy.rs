use crate::error::StartError;
use stayfast_frame::Entropy;
use stayfast_seal::Identity;
use stayfast_units::RunId;

/// The operating system's random bytes.
///
/// ```
/// use stayfast_frame::Entropy;
/// let mut bytes = [0; 16];
/// stayfast_net::OsEntropy.fill(&mut bytes);
/// assert_ne!(bytes, [0; 16]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        // A system that gave random bytes when the driver started does not stop doing so; and to go on without
        // would be to give keys away.
        getrandom::fill(bytes).expect("the operating system has stopped giving random bytes");
    }
}

/// Draws a new identity.
///
/// # Errors
/// [`StartError::Entropy`] if the system has no random bytes.
pub fn generate() -> Result<Identity, StartError> {
    random()?;
    Ok(Identity::generate(&mut OsEntropy))
}

pub(crate) fn random() -> Result<u64, StartError> {
    getrandom::u64().map_err(|e| StartError::Entropy(e.to_string()))
}

/// A name for a machine's life towards its peer; never the one that means none. A peer that is removed and added again
/// meets a machine that remembers nothing, so it must see another run, as after a restart.
pub(crate) fn run_id() -> RunId {
    let mut bytes = [0; 8];
    loop {
        OsEntropy.fill(&mut bytes);
        let run = RunId(u64::from_ne_bytes(bytes));
        if run != RunId::NONE {
            return run;
        }
    }
}

/// Whether this machine has instructions for AES, so that AES-256-GCM is both fast and free of tables.
pub(crate) fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::is_x86_feature_detected!("aes") && std::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    false
}
