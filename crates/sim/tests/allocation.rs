//! After a warm-up a datagram costs no allocation.

use core::alloc::{GlobalAlloc, Layout};
use core::net::SocketAddr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use stayfast_sim::{Datagram, Node, PathSpec, Poll, World};
use stayfast_units::Time;
use std::alloc::System;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed to the system's allocator as it came; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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

    let before = ALLOCATIONS.load(Relaxed);
    let begun = std::time::Instant::now();
    world.run_until(Time::from_millis(120_000));
    let took = begun.elapsed();
    // One buffer for each time that more datagrams are under way than ever before; there is an end to that.
    let allocations = ALLOCATIONS.load(Relaxed) - before;
    assert!(allocations < 5, "{allocations}");

    let heard = world.node(b).map(|sink| sink.heard);
    println!("{heard:?} datagrams, {:?}, 100 s in {} ms", world.path(path).map(|path| path.stats()), took.as_millis());
    assert!(heard > Some(420_000));
}
