//! After a warm-up a datagram costs no allocation.

use allocation_counter::measure;
use core::net::SocketAddr;
use core::time::Duration;
use stayfast_sim::{
    CoDel, Datagram, Discipline, Limit, Node, Path, PathSpec, Poll, Probability, Red, TcpConfig, TcpFlow, World,
};
use stayfast_units::{Rate, Time};

/// Sends full-size datagrams at a little more than the path carries.
struct Source {
    next: Time,
    to: SocketAddr,
}

impl Node for Source {
    fn handle(&mut self, _now: Time, _datagram: &mut Datagram) {}

    fn poll(&mut self, now: Time, out: &mut Datagram) -> Poll {
        if now < self.next {
            return Poll::WakeAt(self.next);
        }
        self.next += Duration::from_micros(230);
        out.to = self.to;
        out.bytes.resize(1_472, 0);
        Poll::Transmit
    }
}

/// Answers every second datagram with a short one.
#[derive(Default)]
struct Sink {
    heard: u64,
    owed: Option<SocketAddr>,
}

impl Node for Sink {
    fn handle(&mut self, _now: Time, datagram: &mut Datagram) {
        self.heard += 1;
        self.owed = self.heard.is_multiple_of(2).then_some(datagram.from);
    }

    fn poll(&mut self, _now: Time, out: &mut Datagram) -> Poll {
        let Some(to) = self.owed.take() else { return Poll::Idle };
        out.to = to;
        out.bytes.resize(60, 0);
        Poll::Transmit
    }
}

/// Carries so many datagrams of a hundred flows, at twice what the path can, and returns where it stopped.
fn flood(path: &mut Path, mut now: Time, count: u64) -> Time {
    for n in 0..count {
        while let Some(due) = path.next_timeout().filter(|due| *due <= now) {
            if let Some(datagram) = path.pop(due) {
                path.recycle(datagram.bytes);
            }
        }
        let mut bytes = path.buffer();
        bytes.resize(1_200, 0);
        let flow = SocketAddr::from(([10, 0, 0, 1], (n * n % 100) as u16));
        path.push(now, Datagram::new(flow, SocketAddr::from(([10, 0, 0, 2], 1)), bytes));
        now += Duration::from_micros(100);
    }
    now
}

#[test]
fn after_a_warm_up_nothing_allocates() {
    for discipline in [
        Discipline::DropTail,
        Discipline::Red(Red::default()),
        Discipline::CoDel(CoDel::default()),
        Discipline::FqCoDel(CoDel::default()),
    ] {
        let ms = Duration::from_millis;
        let mut path = Path::new()
            .burst_loss(Probability::percent(1), 3)
            .corrupt(Probability::percent(1))
            .late(Probability::percent(1), ms(2), ms(10))
            .early(Probability::percent(1), ms(2), ms(10))
            .police(Rate::from_bits_per_sec(90_000_000), 100_000)
            .bottleneck(Rate::from_bits_per_sec(50_000_000), Limit::Packets(500), discipline);
        let warm = flood(&mut path, Time::ZERO, 100_000);
        let allocations = measure(|| {
            flood(&mut path, warm, 200_000);
        })
        .count_total;
        // As above: one when more are late at the same time than ever before.
        assert!(allocations < 5, "{discipline:?}: {allocations}");
        assert!(path.stats().left > 120_000, "{:?}", path.stats());
    }
}

#[test]
fn a_hundred_seconds_at_50_mbits_need_no_memory() {
    let spec: PathSpec = "rate=50M rtt=40ms jitter=3ms loss=1% dup=1%".parse().unwrap();
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
    let mut world = World::new(1);
    let a = world.add("a", here, Source { next: Time::ZERO, to: there });
    let b = world.add("b", there, Sink::default());
    let path = world.connect(a, b, spec.forward());
    world.connect(b, a, spec.back());
    world.run_until(Time::from_millis(20_000));

    let begun = std::time::Instant::now();
    let allocations = measure(|| world.run_until(Time::from_millis(120_000))).count_total;
    let took = begun.elapsed();
    // One buffer for each time that more datagrams are under way than ever before; there is an end to that.
    assert!(allocations < 5, "{allocations}");

    let heard = world.node(b).map(|sink| sink.heard);
    println!("{heard:?} datagrams, {:?}, 100 s in {} ms", world.path(path).map(|path| path.stats()), took.as_millis());
    assert!(heard > Some(420_000));
}

#[test]
fn tcp_needs_memory_only_to_grow() {
    let spec: PathSpec = "rate=50M rtt=40ms jitter=3ms queue=1bdp".parse().unwrap();
    let (here, there) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
    let mut world = World::new(1);
    let path = world.add_path("there", spec.forward());
    let back = world.add_path("back", spec.back());
    let flow = TcpFlow::add(&mut world, here, TcpConfig::to(there), &[path], &[back]);
    world.run_until(Time::from_millis(20_000));

    let allocations = measure(|| world.run_until(Time::from_millis(120_000))).count_total;
    // The totals over time, the gaps and the pool of buffers each double a few times.
    let sent = world.node(flow.sender).map(|sender| sender.sent());
    println!("{allocations} allocations for {sent:?} segments");
    assert!(allocations < 20, "{allocations}");
    assert!(sent > Some(450_000));
}
