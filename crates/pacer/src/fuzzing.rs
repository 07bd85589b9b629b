//! Operations, oracle and check, for tests and fuzz targets.

use crate::{BURST, BURST_DATAGRAMS, Pacer};
use arbitrary::Arbitrary;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// One thing that happens to the pacer.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Op {
    /// Time passes, in nanoseconds.
    Wait(u32),
    /// The caller sleeps until it may send, and this much longer.
    Sleep {
        /// Nanoseconds too late.
        late: u16,
    },
    /// The controller names another rate: this many bytes a second, times 1,000 to the power of `scale` modulo 4.
    Rate {
        /// Bytes a second before scaling.
        bytes: u16,
        /// See above.
        scale: u8,
    },
    /// The path takes datagrams of another size.
    MaxDatagram(u16),
    /// The caller sends as many datagrams as it may.
    Send {
        /// Bytes of each.
        datagram: u16,
    },
    /// The caller sends without asking, as a probe timeout does.
    Force(u16),
}

/// Operations to the end of the input.
pub type Ops = stayfast_testkit::Ops<Op>;

/// Runs the operations and checks each answer against a bucket kept in plain fractions of bytes.
///
/// # Panics
/// If more leaves than the rate and one burst allow, if less may leave, or if the pacer wakes its caller for nothing.
pub fn check(ops: &[Op]) {
    let mut state = State {
        pacer: Pacer::new(),
        now: Time::ZERO,
        rate: Rate::from_bytes_per_sec(1_000_000),
        max_datagram: 1_200,
        owed: Owed::default(),
    };
    for &op in ops {
        state.apply(op);
        state.compare();
    }
}

/// What was sent and has not drained: whole bytes, and billionths of the next one.
#[derive(Clone, Copy, Default)]
struct Owed {
    bytes: u128,
    billionths: u128,
}

impl Owed {
    fn drain(&mut self, rate: Rate, time: Duration) {
        let all = self.bytes * 1_000_000_000 + self.billionths;
        let left = all.saturating_sub(u128::from(rate.bytes_per_sec()) * time.as_nanos());
        (self.bytes, self.billionths) = (left / 1_000_000_000, left % 1_000_000_000);
    }

    /// Whole bytes, a begun one counted whole.
    fn ceil(self) -> u128 {
        self.bytes + u128::from(self.billionths > 0)
    }
}

struct State {
    pacer: Pacer,
    now: Time,
    rate: Rate,
    max_datagram: u16,
    owed: Owed,
}

impl State {
    fn burst(&self) -> u128 {
        let size = u128::from(self.max_datagram);
        let (fewest, most) = (u128::from(*BURST_DATAGRAMS.start()) * size, u128::from(*BURST_DATAGRAMS.end()) * size);
        (u128::from(self.rate.bytes_per_sec()) * BURST.as_nanos() / 1_000_000_000).max(fewest).min(most)
    }

    fn pass(&mut self, time: Duration) {
        let later = self.now + time;
        self.owed.drain(self.rate, later - self.now);
        // The pacer learns of a rate when it is asked; time before a change has passed at the rate before.
        self.pacer.spend(later, self.rate, 0);
        self.now = later;
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Wait(nanos) => self.pass(Duration::from_nanos(u64::from(nanos))),
            Op::Sleep { late } => {
                let until = self.pacer.next_send(self.now, self.rate);
                if until < Time::MAX {
                    self.pass(until - self.now + Duration::from_nanos(u64::from(late)));
                    assert_ne!(self.pacer.budget(self.now, self.rate, self.max_datagram), 0, "woken for nothing");
                }
            }
            Op::Rate { bytes, scale } => {
                self.rate = Rate::from_bytes_per_sec(u64::from(bytes) * 1_000_u64.pow(u32::from(scale % 4)));
            }
            Op::MaxDatagram(bytes) => {
                self.max_datagram = bytes.max(1);
                self.pacer.set_max_datagram(bytes);
            }
            Op::Send { datagram } => self.send(datagram),
            Op::Force(bytes) => self.spend(u64::from(bytes)),
        }
    }

    fn send(&mut self, datagram: u16) {
        let bytes = self.pacer.budget(self.now, self.rate, datagram);
        let size = u64::from(datagram.max(1));
        assert_eq!(bytes % size, 0, "whole datagrams");
        let room = self.burst().saturating_sub(self.owed.ceil());
        if size <= u64::from(self.max_datagram) {
            assert_eq!(u128::from(bytes / size), room / u128::from(size), "as many as fit the burst");
        } else {
            assert!(u128::from(bytes) <= room.max(u128::from(size)), "a probe goes alone");
        }
        self.spend(bytes);
    }

    fn spend(&mut self, bytes: u64) {
        self.owed.bytes += u128::from(bytes);
        self.pacer.spend(self.now, self.rate, bytes);
    }

    /// The moment to send next is exact: there is room then, and not a nanosecond earlier.
    fn compare(&self) {
        let next = self.pacer.next_send(self.now, self.rate);
        assert!(next >= self.now);
        let fits = |wait: Duration| {
            let mut owed = self.owed;
            owed.drain(self.rate, wait);
            owed.ceil() + u128::from(self.max_datagram) <= self.burst()
        };
        let wait = next - self.now;
        assert!(next == Time::MAX || fits(wait));
        assert!(wait.is_zero() || !fits(wait - Duration::from_nanos(1)));
    }
}

#[test]
fn any_operations() {
    let count = core::sync::atomic::AtomicUsize::new(0);
    bolero::check!().with_arbitrary::<Ops>().with_max_len(2_048).with_iterations(1_000).for_each(
        |stayfast_testkit::Ops(ops)| {
            count.fetch_add(ops.len(), core::sync::atomic::Ordering::Relaxed);
            check(ops);
        },
    );
    // A generator that gives up would make the test an empty one.
    assert!(count.into_inner() > 20_000);
}
