use crate::Probability;
use crate::chance::Dice;

/// Loss in bursts: a chain of two states, of which one loses everything and the other nothing (Gilbert 1960; the
/// special case of Elliott 1963 with certainties). It makes a step for each datagram.
///
/// The given means fix the chain: a burst of n ends with probability 1/n at each datagram, and the share p of
/// datagrams in a burst asks that one begin with probability p / ((1 - p) n).
#[derive(Debug)]
pub(crate) struct Gilbert {
    loss: Probability,
    length: u32,
    /// In a burst? Not known before the first datagram.
    burst: Option<bool>,
}

impl Gilbert {
    pub(crate) fn new(loss: Probability, length: u32) -> Gilbert {
        Gilbert { loss, length, burst: None }
    }

    /// Changes the means; a burst goes on, unless there is to be no loss at all.
    pub(crate) fn set(&mut self, loss: Probability, length: u32) {
        let burst = self.burst.filter(|_| loss != Probability::ZERO);
        *self = Gilbert { loss, length, burst };
    }

    /// Is the next datagram lost?
    pub(crate) fn loses(&mut self, dice: Dice, ordinal: u64) -> bool {
        if self.loss == Probability::ZERO {
            return false;
        }
        let length = u64::from(self.length.max(1));
        let (lost, kept) = (u64::from(self.loss.as_ppm()), u64::from(1_000_000 - self.loss.as_ppm()));
        let burst = match self.burst {
            // As if it had been running for ever.
            None => dice.hit(ordinal, self.loss),
            Some(true) => !dice.one_in(ordinal, 1, length),
            Some(false) => dice.one_in(ordinal, lost, kept * length),
        };
        self.burst = Some(burst);
        burst
    }
}
