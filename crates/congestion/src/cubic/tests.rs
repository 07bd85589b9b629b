use super::*;
use crate::fuzzing::{Op, check};
use stayfast_testkit::Ops;

const SEGMENT: u64 = 1_200;

/// A sender that keeps its window full; every packet is answered one round trip after it was sent.
struct Run {
    cubic: Cubic,
    now: Time,
    /// How long the answers to a window take to arrive, and so also how long the next window takes to leave.
    rtt: Duration,
    /// When the packets in flight began to leave, and how long they took.
    left: (Time, Duration),
    /// Packets sent so far.
    packets: u64,
}

impl Run {
    fn new(rtt: Duration) -> Run {
        let now = Time::from_millis(10_000);
        Run { cubic: Cubic::new(SEGMENT as u16, now - rtt), now, rtt, left: (now - rtt, rtt), packets: 0 }
    }

    /// Past slow start, with a window of `packets`, just cut.
    fn cut_to(packets: u64, rtt: Duration) -> Run {
        let mut run = Run::new(rtt);
        run.cubic.current.window = (packets * SEGMENT) as f64 / 0.7;
        run.cubic.on_congestion(run.now - rtt, run.now - rtt, Signal::Loss);
        run
    }

    /// An acknowledgement of one packet, sent at `sent`.
    fn acked(&self, sent: Time) -> Acked {
        Acked {
            now: self.now,
            bytes: SEGMENT,
            newest_sent: sent,
            latest_rtt: self.now - sent,
            smoothed_rtt: self.rtt,
            min_rtt: self.rtt,
            in_flight: self.cubic.window(),
            limited: false,
            rate: None,
        }
    }

    /// One round trip; packets for which `lost` says so are. Returns the window at its beginning, in packets.
    fn round(&mut self, lost: impl Fn(u64) -> bool) -> u64 {
        let flight = self.cubic.window() / SEGMENT;
        let began = self.now;
        for i in 1..=flight as u32 {
            let sent = self.left.0 + self.left.1 * i / flight as u32;
            self.now = began + self.rtt * i / flight as u32;
            self.packets += 1;
            if lost(self.packets) {
                self.cubic.on_congestion(self.now, sent, Signal::Loss);
            } else {
                self.cubic.on_acked(&self.acked(sent));
            }
        }
        self.left = (began, self.rtt);
        flight
    }

    fn rounds(&mut self, count: u32) {
        for _ in 0..count {
            self.round(|_| false);
        }
    }

    /// The mean window in packets when exactly every `period`th packet is lost, over ten losses after ten.
    fn mean_window(&mut self, period: u64) -> f64 {
        let (mut sum, mut rounds) = (0, 0);
        while self.packets < 20 * period {
            let window = self.round(|n| n % period == 0);
            if self.packets > 10 * period {
                sum += window;
                rounds += 1;
            }
        }
        sum as f64 / f64::from(rounds)
    }
}

mod slow_start;

#[test]
fn any_sequence_keeps_the_rules() {
    let count = core::sync::atomic::AtomicUsize::new(0);
    bolero::check!().with_arbitrary::<Ops<Op>>().with_max_len(2_048).with_iterations(2_000).for_each(|Ops(ops)| {
        count.fetch_add(ops.len(), core::sync::atomic::Ordering::Relaxed);
        check(ops);
    });
    assert!(count.into_inner() > 20_000, "a generator that gives up makes an empty test");
}

#[test]
fn more_bytes_never_make_a_smaller_window_where_cubic_and_reno_cross() {
    let mark = Op::Congestion { age: 3_043_971_411, ecn: true };
    check(&[mark, Op::Round { millis: 83 }, Op::Round { millis: 185 }, Op::Round { millis: 0 }]);
}

#[test]
fn datagrams_of_one_byte_are_paced() {
    check(&[
        Op::Persistent,
        Op::Datagram(0),
        Op::Persistent,
        Op::Round { millis: 1 },
        Op::Congestion { age: 0, ecn: false },
    ]);
}

/// RFC 9438, 5.1: the mean window is 1.054 (RTT / p)^(3/4) packets where the cubic is above Reno.
#[test]
fn on_a_long_path_the_response_function_is_that_of_the_cubic() {
    for (rtt, period) in [(0.1, 100_000_u64), (0.05, 200_000), (0.2, 20_000)] {
        let expected = 1.054 * libm::pow(rtt * period as f64, 0.75);
        let mean = Run::cut_to(expected as u64, Duration::from_secs_f64(rtt)).mean_window(period);
        assert!((mean / expected - 1.0).abs() < 0.07, "{mean} packets where the RFC has {expected}");
    }
}

/// RFC 9438, 4.3: where Reno is above the cubic it is Reno's, sqrt(3 / 2p) packets.
#[test]
fn on_a_short_path_the_response_function_is_that_of_reno() {
    for period in [1_000_u64, 10_000, 50_000] {
        let expected = libm::sqrt(1.5 * period as f64);
        let mean = Run::cut_to(expected as u64, Duration::from_millis(5)).mean_window(period);
        assert!((mean / expected - 1.0).abs() < 0.07, "{mean} packets where Reno has {expected}");
    }
}

#[test]
fn slow_start_doubles_in_a_round_trip() {
    let mut run = Run::new(Duration::from_millis(50));
    for packets in [10, 20, 40, 80, 160] {
        assert_eq!(run.round(|_| false), packets);
    }
}

#[test]
fn a_loss_leaves_0_7_and_a_mark_0_85_once_in_a_round_trip() {
    for (signal, left) in [(Signal::Loss, 7_000), (Signal::Ecn, 8_500)] {
        let mut run = Run::new(Duration::from_millis(50));
        run.cubic.current.window = 10_000.0;
        let cubic = &mut run.cubic;
        cubic.set_max_datagram(1_000);
        let cut = run.now + run.rtt;
        cubic.on_congestion(cut, run.now, signal);
        cubic.on_congestion(cut, cut, signal);
        assert_eq!(cubic.state(), State { window: left, ssthresh: Some(left), mode: "recovery" });
        cubic.on_congestion(cut + run.rtt, cut + Duration::from_nanos(1), signal);
        assert!(cubic.window() < left, "sent after the cut");
    }
}

#[test]
fn fast_convergence_lowers_the_plateau_of_a_window_that_did_not_recover() {
    let mut run = Run::cut_to(70, Duration::from_millis(100));
    assert_eq!(run.cubic.current.curve.unwrap().w_max, 70.0 * SEGMENT as f64 / 0.7);
    run.rounds(3);
    let prior = run.cubic.current.window;
    run.cubic.on_congestion(run.now, run.now, Signal::Loss);
    assert_eq!(run.cubic.current.curve.unwrap().w_max, prior * (1.0 + 0.7) / 2.0);
}

#[test]
fn nothing_acknowledged_in_recovery_moves_the_window() {
    let mut run = Run::cut_to(70, Duration::from_millis(100));
    let cut = run.cubic.current;
    run.cubic.on_acked(&Acked { bytes: 50_000, ..run.acked(cut.cut.unwrap()) });
    assert_eq!(run.cubic.window(), cut.window as u64);
}

/// Fifty packets a second in 100 ms of round trip: the window is never full, and is cut every half second.
#[test]
fn a_window_that_is_not_full_comes_back_to_what_was_in_use_and_no_further() {
    let mut run = Run::cut_to(7, Duration::from_millis(100));
    let used = 8 * SEGMENT;
    let limited = |run: &mut Run| {
        for _ in 0..25 {
            run.now += Duration::from_millis(20);
            run.cubic.on_sent(run.now, SEGMENT, used - SEGMENT);
            run.cubic.on_acked(&Acked { limited: true, ..run.acked(run.now - run.rtt) });
        }
    };
    run.cubic.on_sent(run.now, SEGMENT, used - SEGMENT);
    limited(&mut run);
    assert_eq!(run.cubic.window(), used);
    run.cubic.on_congestion(run.now, run.now, Signal::Loss);
    let cut = run.cubic.window();
    limited(&mut run);
    // Five round trips of 0.53 segments, and of a whole one beyond the old window.
    assert!((cut + 2 * SEGMENT..=used).contains(&run.cubic.window()), "{cut}, then {}", run.cubic.window());
    limited(&mut run);
    limited(&mut run);
    assert_eq!(run.cubic.window(), used);
}

#[test]
fn idle_and_limited_time_does_not_count() {
    let mut busy = Run::cut_to(70, Duration::from_millis(100));
    busy.rounds(10);
    let mut idle = Run { cubic: busy.cubic.clone(), ..busy };
    idle.now += Duration::from_secs(3_600);
    idle.cubic.on_sent(idle.now, SEGMENT, 0);
    let mut limited = Run { cubic: busy.cubic.clone(), ..busy };
    limited.now += Duration::from_secs(3_600);
    limited.cubic.on_acked(&Acked { limited: true, ..limited.acked(limited.now - limited.rtt) });

    busy.rounds(10);
    for mut other in [idle, limited] {
        other.rounds(10);
        assert_eq!(other.cubic.current, busy.cubic.current);
    }
}

#[test]
fn what_was_in_use_lifts_no_window_beyond_the_largest() {
    let mut run = Run::cut_to(MAX_WINDOW as u64 / SEGMENT, Duration::from_millis(100));
    run.cubic.current.window = MAX_WINDOW - 1.0;
    run.cubic.on_sent(run.now, u64::MAX, 0);
    run.now += run.rtt;
    run.cubic.on_acked(&Acked { limited: true, bytes: u64::MAX, ..run.acked(run.now) });
    assert_eq!(run.cubic.window(), MAX_WINDOW as u64);
}

#[test]
fn an_episode_of_several_events_is_undone_to_before_its_first() {
    let mut run = Run::cut_to(700, Duration::from_millis(100));
    run.rounds(10);
    let before = run.cubic.current;
    for _ in 0..3 {
        run.cubic.on_episode_began();
        run.cubic.on_congestion(run.now, run.now, Signal::Loss);
        run.rounds(2);
    }
    assert!(run.cubic.current.window < 0.5 * before.window);
    run.cubic.on_spurious(run.now);
    assert_eq!(run.cubic.current, before);

    run.cubic.on_congestion(run.now, run.now, Signal::Loss);
    let cut = run.cubic.current;
    run.cubic.on_spurious(run.now);
    assert_eq!(run.cubic.current, cut, "an episode ends once");
}

#[test]
fn a_slow_start_cut_short_by_late_packets_goes_on() {
    let mut run = Run::new(Duration::from_millis(100));
    run.rounds(3);
    run.cubic.on_episode_began();
    run.cubic.on_congestion(run.now, run.now - run.rtt, Signal::Loss);
    run.rounds(1);
    run.cubic.on_spurious(run.now);
    assert_eq!(run.cubic.state(), State { window: 80 * SEGMENT, ssthresh: None, mode: "slow start" });
}

#[test]
fn a_window_that_has_grown_beyond_is_not_taken_back() {
    let mut run = Run::cut_to(10, Duration::from_millis(10));
    run.cubic.on_episode_began();
    let before = run.cubic.window();
    run.cubic.on_congestion(run.now, run.now, Signal::Loss);
    run.rounds(50);
    let grown = run.cubic.current;
    assert!(run.cubic.window() > before);
    run.cubic.on_spurious(run.now);
    assert_eq!(run.cubic.current, grown);
}

#[test]
fn marks_gone_packets_and_persistent_congestion_are_never_undone() {
    let ends: [fn(&mut Cubic, Time); 3] = [
        |cubic, now| cubic.on_congestion(now, Time::ZERO, Signal::Ecn),
        |cubic, _| cubic.on_real(),
        |cubic, now| cubic.on_persistent(now),
    ];
    for end in ends {
        let mut run = Run::cut_to(100, Duration::from_millis(100));
        run.cubic.on_episode_began();
        run.cubic.on_congestion(run.now, run.now, Signal::Loss);
        end(&mut run.cubic, run.now);
        let after = run.cubic.current;
        run.cubic.on_spurious(run.now);
        assert_eq!(run.cubic.current, after);
    }
}

/// RFC 9438, 4.8.
#[test]
fn after_persistent_congestion_it_doubles_up_to_the_threshold() {
    let mut run = Run::cut_to(16, Duration::from_millis(100));
    run.cubic.on_persistent(run.now);
    for packets in [2, 4, 8, 16, 17] {
        let mode = if packets < 16 { "slow start" } else { "avoidance" };
        assert_eq!(run.cubic.state().mode, mode);
        assert_eq!(run.round(|_| false), packets);
    }
}

#[test]
fn the_first_window_is_rfc_9002_s() {
    for (datagram, window) in [(1_200, 12_000), (1_472, 14_720), (1_500, 14_720), (8_972, 17_944), (0, 10)] {
        assert_eq!(Cubic::new(datagram, Time::ZERO).window(), window);
    }
}

#[test]
fn larger_datagrams_lift_the_least_window_saved_or_not() {
    let mut run = Run::cut_to(2, Duration::from_millis(100));
    run.cubic.on_episode_began();
    run.cubic.set_max_datagram(9_000);
    assert_eq!(run.cubic.window(), 18_000);
    run.cubic.on_spurious(run.now);
    assert_eq!(run.cubic.window(), 18_000);
}

#[test]
fn the_pace_leaves_the_window_in_charge() {
    let mut run = Run::new(Duration::from_millis(100));
    assert_eq!(run.cubic.pacing_rate(run.rtt).bytes_per_sec(), 240_000);
    run.cubic.on_congestion(run.now, run.now, Signal::Loss);
    assert_eq!(run.cubic.pacing_rate(run.rtt).bytes_per_sec(), 105_000);
    assert_eq!(run.cubic.pacing_rate(Duration::ZERO), stayfast_units::Rate::MAX);
}

/// The same bits on every machine: the number was computed on x86-64.
#[test]
fn every_window_of_a_long_run_is_the_same_everywhere() {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a over 64-bit words
    for rtt in [3, 40, 250] {
        let mut run = Run::new(Duration::from_millis(rtt));
        for _ in 0..500 {
            run.round(|n| n % 4_099 == 0);
            digest = (digest ^ run.cubic.current.window.to_bits()).wrapping_mul(0x0100_0000_01b3);
        }
    }
    assert_eq!(digest, 0x9e58_8b3a_eb57_a421, "{digest:#x}");
}
