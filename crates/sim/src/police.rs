use core::time::Duration;
use stayfast_units::{Rate, Time};

/// A token bucket that nothing waits for: what finds too few tokens in it is dropped.
///
/// Tokens are bytes times 10^9, so that each nanosecond brings a whole number of them.
#[derive(Debug)]
pub(crate) struct Policer {
    rate: Rate,
    burst: u64,
    tokens: u128,
    since: Time,
}

const TOKENS_PER_BYTE: u128 = 1_000_000_000;

impl Policer {
    /// A full bucket.
    pub(crate) fn new(rate: Rate, burst: u64) -> Policer {
        Policer { rate, burst, tokens: u128::from(burst) * TOKENS_PER_BYTE, since: Time::ZERO }
    }

    /// Changes the parameters. What is in the bucket stays, as far as there is room.
    pub(crate) fn set(&mut self, now: Time, rate: Rate, burst: u64) {
        self.fill(now);
        (self.rate, self.burst) = (rate, burst);
        self.fill(now);
    }

    /// Takes the tokens for so many bytes, if they are there.
    pub(crate) fn admits(&mut self, now: Time, bytes: u64) -> bool {
        self.fill(now);
        let rest = self.tokens.checked_sub(u128::from(bytes) * TOKENS_PER_BYTE);
        self.tokens = rest.unwrap_or(self.tokens);
        rest.is_some()
    }

    fn fill(&mut self, now: Time) {
        let elapsed: Duration = now - self.since;
        let new = u128::from(self.rate.bytes_per_sec()) * elapsed.as_nanos();
        self.tokens = (self.tokens + new).min(u128::from(self.burst) * TOKENS_PER_BYTE);
        self.since = now;
    }
}
