use super::{FULL_SIZE, Source};
use crate::account::{Account, Fate};
use crate::path::Packet;
use core::time::Duration;
use stayfast_units::Time;

/// Parameters of controlled delay (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The wait that is no reason to act.
    pub target: Duration,
    /// How long all waits must have been longer: a long round trip.
    pub interval: Duration,
    /// Marks what is [capable](crate::Ecn::is_capable) instead of dropping it.
    pub ecn: bool,
}

impl Default for CoDel {
    /// 5 ms in 100 ms (RFC 8289, 4.2 and 4.3).
    fn default() -> CoDel {
        CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

/// The state of one queue (RFC 8289, 5). A drop is told to the sender by its effect, so the next one is due after
/// an interval; if the queue stays, ever sooner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// When waits will have been too long for an interval.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    /// Drops since dropping began, or the rate at which it went on where it had stopped.
    count: u32,
    last_count: u32,
}

impl Control {
    /// Takes the next packet from the queue, and drops those before it that are to be dropped (RFC 8289, 5.5).
    pub(super) fn next(
        &mut self,
        codel: &CoDel,
        now: Time,
        queue: &mut impl Source,
        account: &mut Account,
    ) -> Option<Packet> {
        let mut head = self.take(codel, now, queue);
        if self.dropping {
            self.dropping = matches!(head, Some((_, true)));
            while self.dropping && now >= self.drop_next {
                let (mut packet, _) = head?;
                self.count = self.count.saturating_add(1);
                if packet.mark(codel.ecn, account) {
                    self.drop_next = law(codel, self.drop_next, self.count);
                    return Some(packet);
                }
                account.discard(packet.datagram, Fate::Managed);
                head = self.take(codel, now, queue);
                self.dropping = matches!(head, Some((_, true)));
                if self.dropping {
                    self.drop_next = law(codel, self.drop_next, self.count);
                }
            }
        } else if let Some((mut packet, true)) = head {
            if packet.mark(codel.ecn, account) {
                head = Some((packet, true));
            } else {
                account.discard(packet.datagram, Fate::Managed);
                head = self.take(codel, now, queue);
            }
            self.begin(codel, now);
        }
        head.map(|(packet, _)| packet)
    }

    /// Dropping begins; if it ended not long ago, at the pace that it had then.
    fn begin(&mut self, codel: &CoDel, now: Time) {
        let paced = self.count.saturating_sub(self.last_count);
        let recent = now - self.drop_next < codel.interval.saturating_mul(16);
        self.count = if paced > 1 && recent { paced } else { 1 };
        self.drop_next = law(codel, now, self.count);
        self.last_count = self.count;
        self.dropping = true;
    }

    /// The head of the queue, and whether waits have been too long for an interval. What is left being less than a
    /// full packet is a good queue whatever its wait.
    fn take(&mut self, codel: &CoDel, now: Time, queue: &mut impl Source) -> Option<(Packet, bool)> {
        let Some((since, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now - since < codel.target || queue.bytes() <= FULL_SIZE {
            self.first_above = None;
            return Some((packet, false));
        }
        Some((packet, now >= *self.first_above.get_or_insert(now + codel.interval)))
    }
}

/// The control law: the next drop after interval / sqrt(count).
fn law(codel: &CoDel, from: Time, count: u32) -> Time {
    // The root with 16 binary places.
    let root = (u64::from(count) << 32).isqrt().max(1);
    let nanos = (codel.interval.as_nanos() << 16) / u128::from(root);
    from + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_is_that_of_the_inverse_root() {
        let codel = CoDel::default();
        for count in [1u32, 2, 3, 10, 100, 65_536, 1_000_000, u32::MAX] {
            let exact = 1e8 / f64::from(count).sqrt();
            let wait = (law(&codel, Time::ZERO, count) - Time::ZERO).as_nanos() as f64;
            assert!((wait - exact).abs() <= exact * 1e-5 + 1.0, "{count}: {wait} instead of {exact}");
        }
    }
}
