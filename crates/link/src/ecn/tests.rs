use super::*;
use alloc::boxed::Box;
use alloc::vec::Vec;
use stayfast_recovery::{Config, Ledger, Timeout};

const RTT: Duration = Duration::from_millis(20);
/// Bits that somebody else sends.
const ECT1: u8 = 0b01;
const CE: u8 = 0b11;

/// What becomes of the bits of a packet, by its number; `None`: it is dropped.
type Middle = Box<dyn FnMut(u64, u8) -> Option<u8>>;

/// A sender's marks and ledger, a path, and a receiver that counts.
struct Rig {
    ecn: Validation,
    ledger: Ledger<Carried>,
    middle: Middle,
    now: Time,
    number: u64,
    /// How many left with a mark.
    marked: u64,
    arrived: Vec<u64>,
    counts: EcnCounts,
}

impl Rig {
    fn new(middle: impl FnMut(u64, u8) -> Option<u8> + 'static) -> Rig {
        Rig {
            ecn: Validation::new(),
            ledger: Ledger::new(Config::default()),
            middle: Box::new(middle),
            now: Time::from_millis(1_000),
            number: 0,
            marked: 0,
            arrived: Vec::new(),
            counts: EcnCounts::default(),
        }
    }

    /// Packets leave, as the state has it.
    fn send(&mut self, count: u64) {
        for _ in 0..count {
            let bits = self.ecn.mark(self.now);
            self.send_with(bits);
        }
    }

    fn send_with(&mut self, bits: u8) {
        let number = PacketNumber(self.number);
        let mut carried = Carried::new(false);
        carried.marked = bits != NOT_ECT;
        self.ledger.sent(number, self.now, 1_200, true, false, carried).unwrap();
        if carried.marked {
            self.ecn.sent(number);
            self.marked += 1;
        }
        self.number += 1;
        let Some(bits) = (self.middle)(number.0, bits) else { return };
        self.arrived.push(number.0);
        match bits {
            ECT0 => self.counts.ect0 += 1,
            ECT1 => self.counts.ect1 += 1,
            CE => self.counts.ce += 1,
            _ => {}
        }
    }

    /// A round trip later all that has arrived is acknowledged. True if that tells of congestion.
    fn ack(&mut self) -> bool {
        self.now += RTT;
        let (arrived, counts) = (self.arrived.clone(), self.counts);
        self.ack_of(&arrived, counts)
    }

    fn ack_of(&mut self, arrived: &[u64], counts: EcnCounts) -> bool {
        let Some(largest) = arrived.iter().max().map(|number| PacketNumber(*number)) else { return false };
        let (now, ecn) = (self.now, &mut self.ecn);
        let ranges = arrived.iter().rev().map(|number| (PacketNumber(*number), PacketNumber(*number)));
        let mut sink = |outcome, sent: &Sent<Carried>| ecn.settled(now, outcome, sent);
        let report = self.ledger.acknowledge(now, largest, Duration::ZERO, ranges, &mut sink).unwrap();
        let counts = Some(counts).filter(|counts| *counts != EcnCounts::default());
        report.newest_sent.is_some() && self.ecn.on_ack(now, counts)
    }

    /// Waits until the ledger asks for a probe, which leaves without a mark.
    fn probe(&mut self) {
        loop {
            self.now = self.ledger.next_timeout().expect("something is in flight").0;
            let (now, ecn) = (self.now, &mut self.ecn);
            let (timeout, _) = self.ledger.timeout(now, &mut |outcome, sent| ecn.settled(now, outcome, sent));
            if let Timeout::Probe { .. } = timeout {
                self.ecn.on_probe_timeout(now);
                return self.send_with(NOT_ECT);
            }
        }
    }

    fn is(&self) -> Ecn {
        self.ecn.is()
    }
}

fn in_use() -> Rig {
    let mut rig = Rig::new(|_, bits| Some(bits));
    rig.send(2);
    rig.ack();
    assert_eq!(rig.is(), Ecn::InUse);
    rig
}

#[test]
fn ten_packets_are_marked_until_the_counts_agree() {
    let mut rig = Rig::new(|_, bits| Some(bits));
    rig.send(30);
    assert_eq!((rig.is(), rig.marked), (Ecn::Untested, 10));
    assert!(!rig.ack());
    rig.send(30);
    assert_eq!((rig.is(), rig.marked), (Ecn::InUse, 40));
}

#[test]
fn a_path_that_clears_or_changes_the_mark_gets_no_more() {
    for bits in [NOT_ECT, ECT1] {
        let mut rig = Rig::new(move |_, _| Some(bits));
        rig.send(2);
        assert!(!rig.ack());
        rig.send(30);
        assert_eq!((rig.is(), rig.marked), (Ecn::Unusable, 2), "{bits:02b}");
    }
}

#[test]
fn a_path_that_begins_to_clear_marks_in_mid_life_is_found() {
    let mut rig = Rig::new(|number, bits| Some(if number < 200 { bits } else { NOT_ECT }));
    rig.send(100);
    rig.ack();
    rig.send(100);
    rig.ack();
    assert_eq!(rig.is(), Ecn::InUse);
    rig.send(2);
    rig.ack();
    assert_eq!((rig.is(), rig.marked), (Ecn::Unusable, 112));
}

#[test]
fn congestion_is_told_once_for_each_rise_of_the_count() {
    let mut rig = Rig::new(|number, bits| Some(if number % 8 == 3 { CE } else { bits }));
    rig.send(8);
    assert!(rig.ack());
    assert_eq!((rig.is(), rig.ecn.marks()), (Ecn::InUse, 1));
    rig.send(3);
    assert!(!rig.ack());
    rig.send(14);
    assert!(rig.ack());
    assert_eq!(rig.ecn.marks(), 3);
}

#[test]
fn marks_that_nobody_set_are_not_believed() {
    let mut rig = Rig::new(|_, bits| Some(if bits == NOT_ECT { CE } else { bits }));
    rig.send(30);
    assert!(!rig.ack());
    assert_eq!((rig.is(), rig.ecn.marks()), (Ecn::Unusable, 0));
}

#[test]
fn a_path_where_everything_is_congested_is_not_believed_for_long() {
    let mut rig = Rig::new(|_, bits| Some(if bits == ECT0 { CE } else { bits }));
    rig.send(9);
    assert!(rig.ack());
    assert_eq!(rig.is(), Ecn::Untested);
    rig.send(5);
    assert!(!rig.ack());
    rig.send(100);
    assert_eq!((rig.is(), rig.marked), (Ecn::Unusable, 10));
}

#[test]
fn a_path_that_drops_marked_packets_loses_ten_and_is_asked_again_later() {
    let mut rig = Rig::new(|number, bits| Some(bits).filter(|bits| *bits == NOT_ECT || number > 40));
    rig.send(30);
    rig.ack();
    assert_eq!((rig.is(), rig.marked), (Ecn::Unusable, 10));
    rig.now += AGAIN - Duration::from_nanos(1);
    rig.send(11);
    assert_eq!(rig.marked, 10);
    rig.now += Duration::from_nanos(1);
    rig.send(1);
    assert_eq!((rig.is(), rig.marked), (Ecn::Untested, 11));
    rig.ack();
    assert_eq!(rig.is(), Ecn::InUse);
}

#[test]
fn a_lone_loss_is_not_blamed_on_the_mark_and_three_are() {
    let mut rig = Rig::new(|_, bits| Some(bits).filter(|bits| *bits == NOT_ECT));
    for lost in 1..=3 {
        rig.send(1);
        rig.probe();
        rig.ack();
        assert_eq!(rig.marked, lost, "the next one is marked again");
        // The lone packet is lost, by time, after the probe was acknowledged.
        while rig.ledger.in_flight() > 0 {
            rig.now = rig.ledger.next_timeout().unwrap().0;
            let (now, ecn) = (rig.now, &mut rig.ecn);
            rig.ledger.timeout(now, &mut |outcome, sent| ecn.settled(now, outcome, sent));
        }
        assert_eq!(rig.is(), if lost < 3 { Ecn::Untested } else { Ecn::Unusable });
    }
    rig.send(5);
    assert_eq!(rig.marked, 3);
}

#[test]
fn a_probe_timeout_ends_the_marks_of_a_test() {
    let mut rig = Rig::new(|number, bits| Some(bits).filter(|_| number > 5));
    rig.send(3);
    rig.probe();
    rig.send(4);
    assert_eq!(rig.marked, 3);
}

#[test]
fn a_path_in_use_that_begins_to_drop_is_found_and_an_outage_is_forgiven() {
    for drops in [true, false] {
        let mut rig = Rig::new(move |number, bits| {
            let dead = (2..20).contains(&number) && (number < 16 || bits == ECT0);
            Some(bits).filter(|bits| !(dead || drops && number >= 20 && *bits == ECT0))
        });
        rig.send(2);
        rig.ack();
        rig.send(10);
        assert_eq!((rig.is(), rig.marked), (Ecn::InUse, 12));
        // Four probes find nobody, one does.
        (0..5).for_each(|_| rig.probe());
        rig.ack();
        assert_eq!(rig.is(), Ecn::Untested);
        rig.now += RTT;
        rig.send(20);
        rig.ack();
        assert_eq!(rig.is(), if drops { Ecn::Unusable } else { Ecn::InUse });
    }
}

#[test]
fn another_run_counts_from_nothing() {
    let mut rig = in_use();
    rig.send(5);
    rig.ledger.abandon(&mut |_| {});
    rig.ecn.run_changed();
    (rig.arrived, rig.counts) = (Vec::new(), EcnCounts::default());
    rig.send(3);
    assert!(!rig.ack());
    assert_eq!((rig.is(), rig.marked), (Ecn::InUse, 10));
}

#[test]
fn a_test_whose_packets_are_forgotten_begins_anew() {
    let mut rig = Rig::new(|_, _| None);
    rig.send(12);
    rig.ledger.abandon(&mut |_| {});
    rig.ecn.forgotten();
    rig.send(12);
    assert_eq!((rig.is(), rig.marked), (Ecn::Untested, 20));
}

#[test]
fn an_older_acknowledgement_that_comes_later_says_nothing_new() {
    let mut rig = in_use();
    rig.send(4);
    let before = EcnCounts { ect0: 3, ..rig.counts };
    let counts = rig.counts;
    rig.ack_of(&[4, 5], counts);
    // Its counts lag behind what is acknowledged by now.
    rig.ack_of(&[2, 3], before);
    assert_eq!(rig.is(), Ecn::InUse);
}

#[test]
fn a_mark_counts_once_whatever_the_order_of_acknowledgements() {
    let mut rig = Rig::new(|number, bits| Some(if number == 4 { CE } else { bits }));
    rig.send(4);
    let before = rig.counts;
    rig.send(2);
    let counts = rig.counts;
    assert!(rig.ack_of(&[4, 5], counts));
    assert!(!rig.ack_of(&[0, 1, 2, 3], before), "from before the mark");
    rig.send(1);
    assert!(!rig.ack(), "it was told");
    assert_eq!((rig.is(), rig.ecn.marks()), (Ecn::InUse, 1));
}

#[test]
fn what_never_left_is_no_part_of_a_test() {
    let mut rig = Rig::new(|number, bits| Some(bits).filter(|_| number >= 10));
    rig.send(12);
    let (now, ecn) = (rig.now, &mut rig.ecn);
    rig.ledger.outstanding().filter(|sent| sent.number.0 < 10).for_each(|sent| ecn.unsent(now, sent));
    (0..10).for_each(|number| rig.ledger.unsent(PacketNumber(number)));
    assert_eq!(rig.ecn.mark(rig.now), ECT0);
    rig.send(2);
    rig.ack();
    assert_eq!(rig.is(), Ecn::InUse);
}

/// splitmix64
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Losses, marks of congestion, acknowledgements that are lost or come late, restarts of the test: whatever an honest
/// path does, its counts are never doubted; and one that clears marks is found at the first acknowledgement.
#[test]
fn an_honest_path_is_never_doubted_and_a_bleaching_one_always_is() {
    for seed in 0..2_000 {
        let bleaches = seed % 2 == 1;
        let mut dice = seed;
        let mut chance = seed ^ 0xc4a9;
        let mut rig = Rig::new(move |_, bits| match draw(&mut chance) % 20 {
            0..=2 => None,
            _ if bleaches => Some(NOT_ECT),
            3 if bits == ECT0 => Some(CE),
            _ => Some(bits),
        });
        let mut delayed: Option<(Vec<u64>, EcnCounts)> = None;
        for _ in 0..60 {
            rig.now += RTT / 4;
            match draw(&mut dice) % 8 {
                0..=3 => rig.send(draw(&mut dice) % 6),
                4 => delayed = Some((rig.arrived.clone(), rig.counts)),
                5 => {
                    let (arrived, counts) = delayed.take().unwrap_or_default();
                    rig.ack_of(&arrived, counts);
                }
                6 if draw(&mut dice).is_multiple_of(8) => rig.ecn.restart(),
                _ => {
                    rig.ack();
                }
            }
            let blamed = rig.ecn.acked == 0;
            assert!(rig.is() != Ecn::Unusable || bleaches || blamed, "seed {seed}: {:?}", rig.ecn);
            assert!(!(bleaches && rig.is() == Ecn::InUse), "seed {seed}: {:?}", rig.ecn);
        }
    }
}
