//! Do the TCP models do in numbers what the RFCs and measurements of TCP say?

mod tcp_lab;

use core::time::Duration;
use stayfast_sim::{Element, Limit, PathSpec, Probability, TCP_PAYLOAD, TcpConfig, TcpControl, TcpFlow, World};
use stayfast_units::Time;
use tcp_lab::{Lab, ceiling, config, seconds};

/// Slope, intercept and R^2 of the straight line through points, by least squares.
fn fit(points: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64, f64) {
    let n = points.clone().count() as f64;
    let mean = |f: fn((f64, f64)) -> f64| points.clone().map(f).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: fn(f64, f64) -> f64| points.clone().map(|p| f(p.0 - x, p.1 - y)).sum::<f64>();
    let (xx, xy, yy) = (sum(|a, _| a * a), sum(|a, b| a * b), sum(|_, b| b * b));
    (xy / xx, y - xy / xx * x, xy * xy / (xx * yy))
}

/// RFC 9438, 1, 4.2: after a loss the window is a cubic of the time, W = C (t - K)^3 + W_max. Fitted without knowing any
/// of the three: for each K in question a straight line over (t - K)^3; the best K is the one with the highest R^2.
#[test]
fn after_one_loss_cubic_draws_its_curve() {
    // So fast that nothing but the injected loss limits the window.
    let mut lab = Lab::new(1, 10_000, Limit::NONE);
    let flow = lab.plain(100, 0, TcpControl::Cubic);
    lab.world.run_until(Time::from_millis(750));
    let before = lab.world.node(flow.sender).unwrap().state().window;
    lab.world.set(lab.bottleneck, Element::Outage(true));
    while lab.world.path(lab.bottleneck).unwrap().stats().cut == 0 {
        lab.world.step();
    }
    lab.world.set(lab.bottleneck, Element::Outage(false));
    let begin = lab.world.now() + Duration::from_millis(300);
    let mut points = Vec::new();
    for tick in 0..140 {
        let t = Duration::from_millis(100 * tick);
        lab.world.run_until(begin + t);
        points.push((t.as_secs_f64(), lab.world.node(flow.sender).unwrap().state().window));
    }
    let sender = lab.world.node(flow.sender).unwrap();
    assert_eq!((sender.recoveries(), sender.resent(), sender.timeouts()), (1, 1, 0));

    let at = |k: f64| fit(points.iter().map(move |(t, w)| ((t - k).powi(3), *w)));
    let best = (0..1_400).map(|k| f64::from(k) / 100.0).max_by(|a, b| at(*a).2.total_cmp(&at(*b).2)).unwrap();
    let (c, w_max, r2) = at(best);
    println!("C {c}, K {best} s, W_max {w_max} of {before}, R^2 {r2}");
    assert!((0.85 * 0.4..1.15 * 0.4).contains(&c), "{c}");
    assert!(r2 >= 0.99, "{r2}");
    // The loss is noticed a round trip later, when slow start has gone on.
    let k = (w_max * 0.3 / 0.4).cbrt();
    assert!((k - best).abs() < 0.5, "K is {best}, for a cut from {w_max} to 0.7 it ought to be {k}");
}

/// The mean window, in segments, of a flow that only random loss limits.
fn mean_window(control: TcpControl, ppm: u32, rtt: u64, seed: u64) -> f64 {
    let mut lab = Lab::new(seed, 10_000, Limit::NONE);
    lab.flow(rtt, 0, Probability::ppm(ppm), config(0, control));
    // After the losses that end slow start, a hundred and more.
    let (from, to) = (seconds(20), seconds(150));
    lab.world.run_until(to);
    lab.mbits(from, to)[0] * 1e6 / 8.0 / TCP_PAYLOAD as f64 * rtt as f64 / 1e3
}

const PPM: [u32; 5] = [300, 1_000, 3_000, 10_000, 30_000];

/// The mean window over a few seeds for each loss rate, beside what `formula` says, and the slope over the loss rate.
fn response(control: TcpControl, rtt: u64, formula: impl Fn(f64) -> f64) -> f64 {
    let points = PPM.map(|ppm| {
        let window = (1..=3).map(|seed| mean_window(control, ppm, rtt, seed)).sum::<f64>() / 3.0;
        let p = f64::from(ppm) / 1e6;
        let ratio = window / formula(p);
        println!("{control:?}, RTT {rtt}, loss {p}: window {window:.1}, {ratio:.2} of the formula's");
        assert!((0.625..=1.6).contains(&ratio), "{control:?}, RTT {rtt}, loss {p}: {window}, {ratio}");
        (p.ln(), window.ln())
    });
    fit(points.into_iter()).0
}

/// RFC 9438, 5, for losses at equal distances: the larger of equation 5 and of the Reno-friendly window.
#[test]
fn cubic_answers_to_random_loss_as_its_formula_says() {
    for rtt in [40, 100] {
        let slope = response(TcpControl::Cubic, rtt, |p| {
            let cubic = (0.4_f64 * (3.0 + 0.7) / (4.0 * (1.0 - 0.7))).powf(0.25) * (rtt as f64 / 1e3 / p).powf(0.75);
            let friendly = (3.0 / (2.0 * p)).sqrt();
            cubic.max(friendly)
        });
        println!("slope {slope}");
        assert!((-0.8..=-0.45).contains(&slope), "{slope}");
    }
}

/// Mathis et al., 1997: sqrt(3 / 2p) for losses at equal distances, every segment acknowledged or counted.
#[test]
fn reno_answers_to_random_loss_as_its_formula_says() {
    let slope = response(TcpControl::Reno, 100, |p| (3.0 / (2.0 * p)).sqrt());
    println!("slope {slope}");
    assert!((-0.65..=-0.4).contains(&slope), "{slope}");
}

/// What a TCP of Linux with CUBIC got through an emulator of the same path, with real sockets and the real clock: Mbit/s
/// over 15 s, medians. RTT in ms, loss each way in percent, jitter each way in ms.
const KERNEL: [(u64, u32, u64, f64); 12] = [
    (20, 0, 0, 47.6),
    (20, 0, 3, 47.3),
    (20, 1, 0, 6.47),
    (20, 1, 3, 6.59),
    (20, 5, 0, 1.83),
    (20, 5, 3, 2.14),
    (100, 0, 0, 46.3),
    (100, 0, 3, 41.5),
    (100, 1, 0, 1.89),
    (100, 1, 3, 2.04),
    (100, 5, 0, 0.50),
    (100, 5, 3, 0.50),
];

#[test]
fn it_is_as_fast_as_the_kernels() {
    for (rtt, loss, jitter, kernel) in KERNEL {
        let spec = format!("rate=50M rtt={rtt}ms queue=1bdp loss={loss}% jitter={jitter}ms");
        let mut rates = [1, 2, 3, 4, 5].map(|seed| {
            let spec: PathSpec = spec.parse().unwrap();
            let mut world = World::new(seed);
            let (there, back) = (world.add_path("there", spec.forward()), world.add_path("back", spec.back()));
            let from = "10.1.0.1:1".parse().unwrap();
            let flow = TcpFlow::add(&mut world, from, config(0, TcpControl::Cubic), &[there], &[back]);
            world.run_until(seconds(15));
            flow.goodput(&world, Time::ZERO, seconds(15)).bits_per_sec() as f64 / 1e6
        });
        rates.sort_by(f64::total_cmp);
        let ratio = rates[2] / kernel;
        println!("{spec}: {rates:.2?}, the kernel's {kernel}, ratio {ratio:.2}");
        assert!((0.75..=1.33).contains(&ratio), "{spec}: {rates:?}, the kernel's {kernel}");
    }
}

/// What flows share, in Mbit/s.
const MBITS: u64 = 20;

fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    sum * sum / (rates.len() as f64 * squares)
}

/// Equal flows share equally in the long run. A little jitter takes away the phase effects of a world without noise,
/// in which the same flow finds the queue full each time.
#[test]
fn equal_flows_share_equally() {
    for control in [TcpControl::Cubic, TcpControl::Reno] {
        for count in [2, 4, 8] {
            for seed in 1..=2 {
                let mut lab = Lab::with_bdp(seed, MBITS, 40);
                for _ in 0..count {
                    lab.plain(40, 1, control);
                }
                let (from, to) = (seconds(10), seconds(60));
                lab.world.run_until(to);
                let rates = lab.mbits(from, to);
                let (index, sum) = (jain(&rates), rates.iter().sum::<f64>());
                println!("{control:?} x {count}: Jain {index:.3}, sum {sum:.1}, {rates:.3?}");
                assert!(index >= 0.9, "{control:?} x {count}: {rates:?}");
                assert!(sum >= 0.95 * ceiling(MBITS as f64), "{control:?} x {count}: {rates:?}");
            }
        }
    }
}

/// Beside a flow with a short round trip one with a longer round trip gets less: with Reno, whose growth per second falls
/// with the square of it, less than with CUBIC, whose growth is one of time (RFC 9438, 5.2). The queue of 40 ms
/// is in both round trips and makes them more alike than the lines are.
#[test]
fn a_longer_round_trip_gets_less() {
    let ratio = |control, long| {
        let ratios = (1..=3).map(|seed| {
            let mut lab = Lab::with_bdp(seed, MBITS, 40);
            lab.plain(20, 1, control);
            lab.plain(long, 1, control);
            lab.world.run_until(seconds(80));
            let rates = lab.mbits(seconds(10), seconds(80));
            rates[0] / rates[1]
        });
        ratios.sum::<f64>() / 3.0
    };
    for long in [40, 80] {
        let [cubic, reno] = [TcpControl::Cubic, TcpControl::Reno].map(|control| ratio(control, long));
        println!("RTT 20 beside {long}: CUBIC {cubic:.2}, Reno {reno:.2} to one");
        let lines = long as f64 / 20.0;
        assert!(cubic > 1.1 && cubic < lines, "{cubic}");
        assert!(reno > cubic && reno < lines * lines, "{reno}");
    }
}

/// When the path is full, HyStart ends a newcomer's slow start early; what follows is the slow part of avoidance. So it
/// takes its time, longer with CUBIC than with Reno, but it comes to half.
#[test]
fn who_comes_late_reaches_a_fair_share() {
    for control in [TcpControl::Cubic, TcpControl::Reno] {
        for rtt in [20, 80] {
            let shares = [1, 2, 3].map(|seed| {
                let mut lab = Lab::with_bdp(seed, MBITS, rtt);
                lab.plain(rtt, 1, control);
                let late = TcpConfig { start: seconds(20), ..config(1, control) };
                lab.flow(rtt, 1, Probability::ZERO, late);
                lab.world.run_until(seconds(120));
                [(30, 40), (60, 120)].map(|(from, to)| {
                    let rates = lab.mbits(seconds(from), seconds(to));
                    rates[1] / (rates[0] + rates[1])
                })
            });
            let [soon, later] = [0, 1].map(|i| shares.iter().map(|share| share[i]).sum::<f64>() / 3.0);
            println!("{control:?}, RTT {rtt}: share {soon:.2} from 10 s on, {later:.2} from 40 s on, {shares:.2?}");
            assert!((0.45..=0.55).contains(&later), "{control:?}, RTT {rtt}: {shares:?}");
        }
    }
}
